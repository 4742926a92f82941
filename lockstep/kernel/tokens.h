// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

// What transformers do to tokens beside matrix products and attention, with fewer passes over memory than libtorch's
// operators need. Tokens are [..., width] without gaps. Every takes_... says whether the GPU's kernels are there and
// take the tensors: 16 bit, a multiple of 8 columns.
namespace lockstep::kernel {

struct SumAndNorm {
  at::Tensor sum, normalized;
};
bool takes_add_layer_norm(const at::Tensor& input);  // of at most 2048 columns, too
// sum = input + branch (an undefined branch: the input as it is), normalized = layer norm of the sum. Backward the
// gradients of both meet in one pass. Weight and bias are fp32; differentiable in all.
SumAndNorm add_layer_norm(const at::Tensor& input, const at::Tensor& branch, const at::Tensor& weight,
                          const at::Tensor& bias, double epsilon);

struct Heads {
  at::Tensor query, key, value;  // [batch, heads, tokens, size], views
};
bool takes_split_qkv(const at::Tensor& qkv, int64_t heads);
// Of [batch, tokens, 3 x heads x size]. Backward the three gradients are put side by side in one pass.
Heads split_qkv(const at::Tensor& qkv, int64_t heads);

bool takes_linear(const at::Tensor& input, const at::Tensor& weight);
// at::linear; backward the gradient of the bias is added up in one pass, in fp32.
at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);
// at::gelu of it, what takes_linear takes; backward the gradients of GELU and of the bias come from one pass.
at::Tensor linear_gelu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace lockstep::kernel
