// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// The plan for a terminal of that many columns: what matters, the job, a row for each option, the reasons.
std::string to_text(const Plan& plan, int64_t columns);

}  // namespace lockstep::planning
