// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/planning/plan.h"
#include "lockstep/spec/choice.h"
#include "lockstep/spec/project.h"

namespace lockstep::advice {

LOCKSTEP_CHOICE(Verdict, true_, false_, conditional, unknown)
std::string words_of(Verdict verdict);  // "true", "false", ...

struct Checked {
  spec::Claim claim;
  Verdict verdict = Verdict::unknown;
  std::string because;  // with the number
};

// Holds each statement against a plan of the applicant's job as it is written. REQUIRES: the plan has an option for the
// machine option of each claim.
std::vector<Checked> check_claims(const std::vector<spec::Claim>& claims, const planning::Plan& plan);

// The options of one machine option of a plan: the job as written, and with levers where the search found some.
struct Tried {
  const forecast::Option* written = nullptr;
  const forecast::Option* found = nullptr;  // null: the search has nothing to add

  const forecast::Option* feasible() const;  // the faster one that runs; null: neither does
};
Tried tried_on(const planning::Plan& plan, const std::string& machine_option, int64_t gpus);

// Why an option's memory does not suffice, in bytes: what no lever can remove, where that alone is too much. Empty: it
// suffices.
std::string lack_of_memory(const forecast::Option& option);

}  // namespace lockstep::advice
