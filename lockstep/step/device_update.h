// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/step/optimizer.h"
#include "lockstep/step/pass.h"
#include "lockstep/step/samples.h"
#include "lockstep/step/weight_copies.h"

namespace lockstep::step {

// What comes behind the gradients of a step, without the host: their norm, the loss scale, clipping, whether the step
// is taken, the optimizer, the moving average. So the whole step can be one CUDA graph. The host learns afterwards what
// was decided, from the report that it reads anyway.
class DeviceUpdate {
 public:
  // Alone on a GPU with fused kernels, and an optimizer that has kernels (sgd, adamw): options.on_device says
  // otherwise.
  static bool is_possible(const StepOptions& options, const comm::Group& group);
  // All must outlive it.
  DeviceUpdate(const StepOptions& options, Optimizer& optimizer, const WeightCopies& copies);

  void begin(const Samples& samples, double lr);  // before a step: the numbers that the host has to say
  // Behind backward: `finite`, a truth, of the batch norms' statistics; `scale` of the loss, undefined: 1. What
  // kernel::judge_step reports.
  at::Tensor run(const at::Tensor& totals, const std::vector<at::Tensor>& gradients, const at::Tensor& finite,
                 const at::Tensor& scale) const;
  // After a step that was taken; `finite` as above: otherwise the average is to follow now.
  void was_taken(const Samples& samples, bool finite);
  const at::Tensor& numbers() const { return numbers_; }

 private:
  const StepOptions& options_;
  Optimizer& optimizer_;
  const WeightCopies& copies_;
  at::Tensor said_;     // in main memory
  at::Tensor numbers_;  // on the device
};

}  // namespace lockstep::step
