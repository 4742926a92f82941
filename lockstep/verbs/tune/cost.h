// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/spec/plan.h"
#include "lockstep/tune/study_run.h"

namespace lockstep::verbs::tune {

// What a trial is planned on: its share of this node.
struct TrialPlace {
  int64_t gpus = 0;  // 0: the processors compute
  int64_t workers = 1;
  int64_t memory = 0;  // bytes of the node; 0: not known
  int64_t ranks = 1;   // of a trial on the processors, of which the plan has one
};

// The changes of a trial's job with which the plan of one process is that of one of so many ranks on the processors:
// its share of the batch.
std::vector<std::string> sets_of_rank(const spec::Job& job, std::vector<std::string> sets, int64_t ranks);

// By the option of the plan that has those GPUs; of several ranks on the processors the plan is that of one. One that
// nobody could plan costs nothing known and may be tried.
lockstep::tune::TrialCost cost_of(const spec::Plan& plan, const TrialPlace& place);

// Runs `lockstep plan` as a child: the step is traced on a simulated GPU, which no other verb may have in its process.
lockstep::tune::TrialCost ask_cost(const std::string& lockstep, const base::Path& job,
                                   const std::vector<std::string>& sets, const TrialPlace& place);

}  // namespace lockstep::verbs::tune
