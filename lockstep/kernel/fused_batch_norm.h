// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

struct FusedBatchNorm {
  at::Tensor input;                           // [rows, channels, height, width]
  at::Tensor added;                           // of the same shape, or undefined: added behind the norm
  at::Tensor weight, bias;                    // [channels], fp32
  at::Tensor running_mean, running_variance;  // [channels], fp32; changed in place
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool relu = false;  // behind the sum
};

// Whether the GPU's kernels are there and take the input: 16 bit, channels last, a multiple of 8 channels. Others are
// libtorch's business.
bool takes_fused_batch_norm(const at::Tensor& input);

// A training step's batch norm, residual sum and ReLU: relu(norm(input) + added). Statistics are those of the rows at
// hand. On a GPU two reads and one write of the map forwards; backward keeps the input and, with `added`, a bit an
// element. Differentiable in input, added, weight and bias.
at::Tensor fused_batch_norm(const FusedBatchNorm& call);

}  // namespace lockstep::kernel
