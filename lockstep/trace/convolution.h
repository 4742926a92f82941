// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

namespace lockstep::trace {

// What libtorch's convolution_backward calls for cuDNN: the gradient of the input, then that of the weight, each with
// its own event.
std::tuple<at::Tensor, at::Tensor> convolution_backward(const at::Tensor& input, const at::Tensor& gradient,
                                                        const at::Tensor& weight, at::IntArrayRef padding,
                                                        at::IntArrayRef stride, at::IntArrayRef dilation,
                                                        int64_t groups, bool benchmark, bool deterministic, bool tf32,
                                                        std::array<bool, 2> wanted);

// Likewise for transposed convolutions; `added`: rows and columns beyond those that the input decides.
std::tuple<at::Tensor, at::Tensor> transposed_backward(const at::Tensor& input, const at::Tensor& gradient,
                                                       const at::Tensor& weight, at::IntArrayRef padding,
                                                       at::IntArrayRef added, at::IntArrayRef stride,
                                                       at::IntArrayRef dilation, int64_t groups, bool benchmark,
                                                       bool deterministic, bool tf32, std::array<bool, 2> wanted);

// Likewise for libtorch's own depthwise kernels, which it takes for contiguous images.
std::tuple<at::Tensor, at::Tensor> depthwise_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                      const at::Tensor& weight, at::IntArrayRef kernel,
                                                      at::IntArrayRef stride, at::IntArrayRef padding,
                                                      at::IntArrayRef dilation, std::array<bool, 2> wanted);

}  // namespace lockstep::trace
