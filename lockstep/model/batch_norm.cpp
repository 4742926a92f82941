// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/batch_norm.h"

#include <ATen/ops/batch_norm.h>

namespace lockstep::model {

at::Tensor plain_batch_norm(const BatchNormCall& call, bool training) {
  return finished_batch_norm(at::batch_norm(call.input, call.weight, call.bias, call.running_mean,
                                            call.running_variance, training, call.momentum, call.epsilon,
                                            /*cudnn_enabled=*/true),
                             call);
}

at::Tensor finished_batch_norm(at::Tensor normalized, const BatchNormCall& call) {
  if (call.added.defined()) normalized.add_(call.added);
  if (call.relu) normalized.relu_();
  return normalized;
}

}  // namespace lockstep::model
