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
};

// By the option of the plan that has those GPUs. One that nobody could plan costs nothing known and may be tried.
lockstep::tune::TrialCost cost_of(const spec::Plan& plan, const TrialPlace& place);

// Runs `lockstep plan` as a child: the step is traced on a simulated GPU, which no other verb may have in its process.
lockstep::tune::TrialCost ask_cost(const std::string& lockstep, const base::Path& job,
                                   const std::vector<std::string>& sets, const TrialPlace& place);

}  // namespace lockstep::verbs::tune
