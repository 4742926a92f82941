// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// The same facts as the HTML page, for a mail or a repository.
std::string to_markdown(const Plan& plan);

}  // namespace lockstep::planning
