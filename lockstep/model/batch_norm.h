// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace lockstep::model {

// One batch norm over one input.
struct BatchNormCall {
  at::Tensor input;                           // [rows, channels, height, width]
  at::Tensor weight, bias;                    // [channels]
  at::Tensor running_mean, running_variance;  // [channels]; training changes them in place
  double momentum = 0.1;
  double epsilon = 1e-5;
  at::Tensor added = {};  // of the input's shape: added behind the norm; undefined: nothing
  bool relu = false;      // behind the sum
};

// What a network's batch norms do while training, instead of the network's own way. Called once a batch norm and pass,
// in the order of the network, and once more where a block is recomputed.
using BatchNormRule = std::function<at::Tensor(const BatchNormCall&)>;

// The network's own way: libtorch's operator. While training the rows at hand make the statistics.
at::Tensor plain_batch_norm(const BatchNormCall& call, bool training);

// What comes behind the norm of a call, in place: the sum and the ReLU.
at::Tensor finished_batch_norm(at::Tensor normalized, const BatchNormCall& call);

}  // namespace lockstep::model
