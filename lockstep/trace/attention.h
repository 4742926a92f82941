// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/trace/trace.h"

namespace lockstep::trace {

// Which kernel scaled_dot_product_attention takes on the simulated GPU from now on.
void set_attention(Attention attention);

// What scaled_dot_product_attention asks on CUDA: libtorch's code of the kernel.
int64_t choose_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& mask, double dropout, bool causal,
                         std::optional<double> scale, bool grouped);

}  // namespace lockstep::trace
