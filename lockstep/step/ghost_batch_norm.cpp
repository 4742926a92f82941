// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/ghost_batch_norm.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <vector>

namespace lockstep::step {

at::Tensor ghost_batch_norm(const model::BatchNormCall& call, int64_t slice) {
  const int64_t rows = call.input.size(0);
  at::Tensor mean = at::zeros_like(call.running_mean);
  at::Tensor variance = at::zeros_like(call.running_variance);
  std::vector<at::Tensor> outputs;
  for (int64_t start = 0; start < rows; start += slice) {
    const int64_t count = std::min(slice, rows - start);
    model::BatchNormCall part = call;
    part.input = call.input.narrow(0, start, count);
    part.running_mean = at::zeros_like(mean);  // with momentum 1: become the slice's own
    part.running_variance = at::zeros_like(variance);
    part.momentum = 1;
    part.added = at::Tensor();
    part.relu = false;
    outputs.push_back(model::plain_batch_norm(part, /*training=*/true));
    const double share = static_cast<double>(count) / static_cast<double>(rows);
    mean.add_(part.running_mean, share);
    variance.add_(part.running_variance, share);
  }
  call.running_mean.lerp_(mean, call.momentum);
  call.running_variance.lerp_(variance, call.momentum);
  return model::finished_batch_norm(outputs.size() == 1 ? outputs[0] : at::cat(outputs), call);
}

}  // namespace lockstep::step
