// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/spec/plan.h"

namespace lockstep::verbs::train {

// What to do after a GPU was out of memory, by a plan for the machine it happened on: the settings with which the job
// would fit on so many GPUs, or that it fits as it is where nobody else uses them. Empty: the plan knows nothing.
std::string what_would_fit(const spec::Plan& plan, int64_t gpus);

// Asks `lockstep plan` as a child, with the job and the --set of train's command line. Empty: it had no answer in time.
std::string ask_what_would_fit(const std::string& job, const std::vector<std::string>& sets, int64_t gpus);

}  // namespace lockstep::verbs::train
