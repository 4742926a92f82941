// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/ema.h"

#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>

#include "lockstep/kernel/update.h"

namespace lockstep::step {

Ema::Ema(double decay, const model::Network& network) : decay_(decay) {
  auto all = network.parameters();
  for (auto& buffer : network.buffers()) all.push_back(buffer);
  for (const auto& entry : all) {
    const at::Tensor source = entry.tensor.detach();
    if (!source.is_floating_point()) {
      averages_.push_back({entry.name, source});
      continue;
    }
    averages_.push_back({entry.name, source.clone()});
    sources_.push_back(source);
    targets_.push_back(averages_.back().tensor);
  }
}

double Ema::share(int64_t num_steps) const {
  const auto steps = static_cast<double>(num_steps);
  return 1 - std::min(decay_, (1 + steps) / (10 + steps));
}

void Ema::update(int64_t num_steps) {
  at::_foreach_lerp_(targets_, sources_, share(num_steps));
}

void Ema::update_there(const at::Tensor& numbers) const {
  kernel::follow_average(targets_, sources_, numbers);
}

void Ema::swap() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    const at::Tensor kept = sources_[i].clone();
    sources_[i].copy_(targets_[i]);
    targets_[i].copy_(kept);
  }
}

}  // namespace lockstep::step
