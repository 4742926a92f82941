// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/model/network.h"

namespace lockstep::step {

// The moving average of parameters and batch-norm statistics: average += (1 - decay) * (value - average), once a step.
// Early on the decay is (1 + steps) / (10 + steps) at most, so that the random start is soon forgotten.
class Ema {
 public:
  Ema(double decay, const model::Network& network);  // starts as a copy

  void update(int64_t num_steps);  // after the optimizer's step number `num_steps` (0, 1, ...)
  // Likewise on the device, where `numbers` say that the step is taken (kernel/update.h); share(): 1 - decay.
  void update_there(const at::Tensor& numbers) const;
  double share(int64_t num_steps) const;
  // Live tensors, named as in the network; integer buffers are shared with it.
  const std::vector<model::Named>& averages() const { return averages_; }

  // Exchanges the network's values for the averages, or back: call it in pairs around an evaluation.
  void swap();

 private:
  double decay_;
  std::vector<model::Named> averages_;
  std::vector<at::Tensor> sources_, targets_;  // floating only
};

}  // namespace lockstep::step
