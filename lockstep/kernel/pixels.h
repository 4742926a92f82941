// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::kernel {

// Whether the GPU's kernel is there and takes them: bytes without gaps, at most 4 channels.
bool takes_normalise(const at::Tensor& pixels);

// Bytes [..., channels] as floats of the same shape: pixel * factor + offset, each rounded by itself as libtorch's two
// operators do. One pass, where those take three, and nothing waits for numbers from the host.
at::Tensor normalise(const at::Tensor& pixels, const std::vector<double>& factor, const std::vector<double>& offset);

}  // namespace lockstep::kernel
