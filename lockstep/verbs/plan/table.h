// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/verbs/plan/plan.h"

namespace lockstep::verbs {

// The plan for a terminal of that many columns: what matters, the job, a row for each option, the reasons.
std::string to_text(const Plan& plan, int64_t columns);

}  // namespace lockstep::verbs
