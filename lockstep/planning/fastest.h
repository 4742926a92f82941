// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// For each machine option its fastest feasible option, or the job as written where none is feasible; in the order of
// the plan.
std::vector<const forecast::Option*> fastest_of_each_machine_option(const Plan& plan);

// Seconds of the run, of a step where its length is not known, 0 where neither is.
double run_seconds(const forecast::Option& option);

}  // namespace lockstep::planning
