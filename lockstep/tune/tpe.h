// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/tune/space.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

// The tree-structured Parzen estimator as Optuna 5.0 has it by default: multivariate over the parameters that have no
// condition, the others singly; running trials count as bad ("constant liar"). J. Bergstra et al., "Algorithms for
// hyper-parameter optimization" (NIPS 2011); S. Watanabe, arXiv:2304.11127.
// A paused trial counts as a pruned one. REQUIRES: a trial that is judged.
Values draw_tpe(const Space& space, const std::vector<Trial>& trials, bool maximize, uint64_t seed, int64_t number);

// The trials of the first group (the best tenth, 25 at most) and the rest, each in the order of their numbers.
struct Groups {
  std::vector<const Trial*> good;
  std::vector<const Trial*> bad;
};
Groups split_trials(const std::vector<Trial>& trials, bool maximize);

}  // namespace lockstep::tune
