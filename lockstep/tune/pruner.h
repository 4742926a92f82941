// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/spec/study.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// Whether a running trial shall be stopped at its last intermediate value.
//   median: from `startup` complete trials on, when its best so far is worse than the median that those had at this
//     step.
//   asha: at rung first * factor^k, unless it is among the best max(least, floor(n / factor)) of the n trials that have
//     reached the rung so far, itself counted, by their best values until then; of equal ones the earlier is better. It
//     is paused: see promotable().
struct Pruning {
  bool stop = false;
  std::vector<int64_t> rungs = {};  // asha: which it has reached with this value
};
Pruning judge(const spec::Study& study, const std::vector<Trial>& trials, const Trial& trial, bool maximize,
              int64_t least = 0);

// The paused trial of nobody that goes on next: from the furthest rung down the best that is among the best
// max(least, floor(n / factor)) of its rung by now. L. Li et al., "A system for massively parallel hyperparameter
// tuning" (MLSys 2020). Null: none, as with any scheduler but asha.
const Trial* promotable(const spec::Study& study, const std::vector<Trial>& trials, bool maximize, int64_t least);

}  // namespace lockstep::tune
