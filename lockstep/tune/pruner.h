// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/spec/study.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// Whether a running trial shall be stopped at its last intermediate value.
//   median: from `startup` complete trials on, when its best so far is worse than the median that those had at this
//   step. asha: at rung first * factor^k it goes on when it is among the best max(1, floor(n / factor)) of the n trials
//   that
//     have reached the rung so far, itself counted (as Optuna's SuccessiveHalvingPruner).
struct Pruning {
  bool stop = false;
  std::vector<int64_t> rungs = {};  // asha: which it has reached with this value
};
Pruning judge(const spec::Study& study, const std::vector<Trial>& trials, const Trial& trial, bool maximize);

}  // namespace lockstep::tune
