// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

struct PoolWindow {
  int64_t size = 2, stride = 2, padding = 0;
  bool ceil = false;  // a window that reaches beyond the map counts, as at::max_pool2d has it
};

// Whether the GPU's kernels are there and take the input: 16 bit, channels last, a multiple of 8 channels.
bool takes_max_pool(const at::Tensor& input);

// at::max_pool2d of [rows, channels, height, width], channels last; keeps a byte an output for backward, where
// libtorch keeps eight. Differentiable; the gradient is added up in one order.
at::Tensor max_pool(const at::Tensor& input, const PoolWindow& window);

}  // namespace lockstep::kernel
