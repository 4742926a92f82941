// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::run {

// How many checkpoints of a run may lie on the disk at once: the `keep` newest, the best and the milestones besides,
// and the one that is being written. What the plan says and what the run says before its first step.
inline int64_t most_checkpoints(int64_t keep, bool best, int64_t milestones) {
  return std::max<int64_t>(1, keep) + 1 + (best ? 1 : 0) + milestones;
}

}  // namespace lockstep::run
