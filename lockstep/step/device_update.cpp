// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/device_update.h"

#include <ATen/ops/zeros.h>

#include <cmath>

#include "lockstep/kernel/update.h"

namespace lockstep::step {

bool DeviceUpdate::is_possible(const StepOptions& options, const comm::Group& group) {
  const spec::Training& training = options.training;
  const bool alone = group.size() == 1 && training.virtual_ranks == 0;
  const bool wanted = options.on_device.value_or(options.device.is_cuda() && training.kernels == spec::Kernels::fused &&
                                                 kernel::has_update_kernels());
  return alone && wanted && Optimizer::can_step_there(training.optimizer);
}

DeviceUpdate::DeviceUpdate(const StepOptions& options, Optimizer& optimizer, const WeightCopies& copies)
    : options_(options),
      optimizer_(optimizer),
      copies_(copies),
      said_(at::zeros({kernel::kHostNumbers}, at::kFloat)),
      numbers_(at::zeros({kernel::kStepNumbers}, at::TensorOptions(options.device).dtype(at::kFloat))) {}

void DeviceUpdate::begin(const Samples& samples, double lr) {
  const spec::Optimizer& rule = options_.training.optimizer;
  const auto steps = static_cast<double>(optimizer_.num_steps() + 1);
  const auto read = static_cast<double>(samples.num_read());
  auto* said = said_.mutable_data_ptr<float>();
  said[kernel::kLearningRate] = static_cast<float>(lr);
  said[kernel::kRowsFactor] = read > 0 ? static_cast<float>(static_cast<double>(samples.global_size) / read) : 0;
  said[kernel::kFirstCorrection] = static_cast<float>(1 - std::pow(rule.beta1, steps));
  said[kernel::kSecondCorrection] = static_cast<float>(std::sqrt(1 - std::pow(rule.beta2, steps)));
  said[kernel::kAverageShare] = options_.ema ? static_cast<float>(options_.ema->share(samples.step)) : 0;
  numbers_.narrow(0, 0, kernel::kHostNumbers).copy_(said_, /*non_blocking=*/true);
}

at::Tensor DeviceUpdate::run(const at::Tensor& totals, const std::vector<at::Tensor>& gradients,
                             const at::Tensor& finite, const at::Tensor& scale) const {
  const spec::Training& training = options_.training;
  at::Tensor report = kernel::judge_step({.totals = totals,
                                          .norm = kernel::gradient_norm(gradients),
                                          .finite = finite,
                                          .scale = scale,
                                          .clip_norm = training.clip_norm},
                                         numbers_);
  optimizer_.step_there(numbers_, copies_, training.clip_value);
  if (options_.ema) options_.ema->update_there(numbers_);
  return report;
}

void DeviceUpdate::was_taken(const Samples& samples, bool finite) {
  optimizer_.count_step();
  if (options_.ema && !finite) options_.ema->update(samples.step);
}

}  // namespace lockstep::step
