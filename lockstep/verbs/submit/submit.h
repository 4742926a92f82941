// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/verbs/submit/prepare.h"

namespace lockstep::verbs {

// Writes job and script into the run folder, opens its chain and queues the first link, or all of them. Returns their
// numbers. When the scheduler refuses the first, the chain is closed again and the error says what to change.
std::vector<std::string> submit(const SubmitRequest& request, const Prepared& prepared);

}  // namespace lockstep::verbs
