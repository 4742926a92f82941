// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/chain/prepare.h"

namespace lockstep::chain {

// What the scheduler took.
struct Queued {
  std::vector<std::string> jobs;
  std::string refusal;  // of the link behind the last of them, where not all could be queued at once
};

// Writes job and script into the run folder, opens its chain and queues the first link, or all of them. When the
// scheduler refuses the first, the chain is closed again and the error says what to change; a later one leaves a
// shorter chain.
Queued submit(const SubmitRequest& request, const Prepared& prepared);

}  // namespace lockstep::chain
