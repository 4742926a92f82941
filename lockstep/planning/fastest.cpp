// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/fastest.h"

#include "lockstep/planning/wording.h"

namespace lockstep::planning {

double run_seconds(const forecast::Option& option) {
  if (!option.trial.time) return 0;
  return option.length ? option.length->total : option.trial.time->step.value;
}

std::vector<const forecast::Option*> fastest_of_each_machine_option(const Plan& plan) {
  std::vector<const forecast::Option*> best;
  for (const auto& option : plan.options) {
    if (option.as_written) {
      best.push_back(&option);
      continue;
    }
    const bool better = !best.back()->feasible() || run_seconds(option) < run_seconds(*best.back());
    if (option.feasible() && better) best.back() = &option;
  }
  return best;
}

}  // namespace lockstep::planning
