// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"

namespace lockstep::step {

// The factor that keeps small gradients within the range of fp16: the loss is multiplied by it, the gradients are
// divided. It starts high and halves after each step whose gradient overflowed; after 2000 good steps in a row it
// doubles. The same numbers as torch.amp.GradScaler, whose users' runs it shall equal.
class LossScale {
 public:
  explicit LossScale(bool used);  // not used: 1, for good

  double value() const;
  bool can_shrink() const;  // an overflow may be the scale's fault; below 1 it is not
  void update(bool good);   // after each step: whether its gradients were finite

  std::vector<model::Named> state() const;  // "loss_scale": [value, good steps]; empty when not used
  // User error when it is used and the state has none.
  void load_state(const std::vector<model::Named>& state);

 private:
  bool used_;
  double value_;
  int64_t good_steps_ = 0;
};

}  // namespace lockstep::step
