// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/comm/group.h"
#include "lockstep/trace/recorder.h"

namespace lockstep::trace {

// Rank 0 of `ranks` that all do the same: a sum is one's own value times their number. Collectives are recorded when
// they are handed over, and when their result is waited for.
std::unique_ptr<comm::Group> simulated_group(int64_t ranks, std::shared_ptr<Recorder> recorder);

}  // namespace lockstep::trace
