// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <array>
#include <tuple>

// Everything of libtorch that is not public API and that the simulated device needs stands here and in inside.cpp,
// each with its reason: what to look at first when libtorch is upgraded.
namespace lockstep::trace::inside {

// What libtorch lets a CUDA library fill in, and we fill in instead.
struct Plugs {
  c10::Allocator* allocator;
  // The backward of a convolution is no operator but a function pointer: cuDNN's, that of transposed and
  // that of depthwise ones.
  std::tuple<at::Tensor, at::Tensor> (*convolution_backward)(const at::Tensor& input, const at::Tensor& gradient,
                                                             const at::Tensor& weight, at::IntArrayRef padding,
                                                             at::IntArrayRef stride, at::IntArrayRef dilation,
                                                             int64_t groups, bool benchmark, bool deterministic,
                                                             bool tf32, std::array<bool, 2> wanted);
  std::tuple<at::Tensor, at::Tensor> (*transposed_backward)(const at::Tensor& input, const at::Tensor& gradient,
                                                            const at::Tensor& weight, at::IntArrayRef padding,
                                                            at::IntArrayRef added, at::IntArrayRef stride,
                                                            at::IntArrayRef dilation, int64_t groups, bool benchmark,
                                                            bool deterministic, bool tf32, std::array<bool, 2> wanted);
  std::tuple<at::Tensor, at::Tensor> (*depthwise_backward)(const at::Tensor& gradient, const at::Tensor& input,
                                                           const at::Tensor& weight, at::IntArrayRef kernel,
                                                           at::IntArrayRef stride, at::IntArrayRef padding,
                                                           at::IntArrayRef dilation, std::array<bool, 2> wanted);
  // Likewise the choice among the kernels of scaled_dot_product_attention.
  int64_t (*attention_choice)(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const std::optional<at::Tensor>& mask, double dropout, bool causal,
                              std::optional<double> scale, bool grouped);
};

// Makes libtorch believe in one CUDA GPU that has cuDNN. Once per process. Bug when torch was asked about CUDA before
// or libtorch_cuda is loaded.
void plug_in(const Plugs& plugs);

// What libtorch's own CUDA kernels call.
at::Tensor view(const at::Tensor& self, at::IntArrayRef sizes);
at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides);
at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset);
at::MemoryFormat convolution_format(const at::Tensor& input, const at::Tensor& weight);
int64_t flash_attention_code();
int64_t cudnn_attention_code();
int64_t efficient_attention_code();
int64_t math_attention_code();

}  // namespace lockstep::trace::inside
