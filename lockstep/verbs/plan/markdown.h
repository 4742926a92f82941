// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/verbs/plan/plan.h"

namespace lockstep::verbs {

// The same facts as the HTML page, for a mail or a repository.
std::string to_markdown(const Plan& plan);

}  // namespace lockstep::verbs
