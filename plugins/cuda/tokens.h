// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/cuda/number.h"

// The GPU's half of lockstep/kernel/tokens.h: rows of bf16 or fp16, weights and sums fp32.
namespace lockstep_cuda_internal {

struct LayerNormForward {
  int64_t rows, width;
  const void* input;
  const void* branch;  // null: nothing is added
  const float* weight;
  const float* bias;
  float epsilon;
  void* sum;  // with a branch
  void* normalized;
  float* mean;     // [rows]
  float* inverse;  // [rows]
};
void add_layer_norm(const LayerNormForward& call, Number number, cudaStream_t stream);

struct LayerNormBackward {
  int64_t rows, width;
  const void* of_sum;  // null: nothing came that way
  const void* of_normalized;
  const void* sum;
  const float* weight;
  const float* mean;
  const float* inverse;
  void* of_input;
  float* of_weight;
  float* of_bias;
  float* sums;  // scratch, [blocks of lockstep::kernel::TokenGrid, 2, width]
};
void add_layer_norm_backward(const LayerNormBackward& call, Number number, cudaStream_t stream);

// [batch, tokens, 3, heads, size] from three of [batch, heads, tokens, size], strides of the first three dims in
// elements, multiples of 8 as is the size.
struct HeadPart {
  const void* data;
  int64_t batch, head, token;
};
struct JoinShape {
  int64_t batch, heads, tokens, size;
};
void join_qkv(const JoinShape& shape, const HeadPart (&parts)[3], void* output, cudaStream_t stream);

// out[width] in the type of the values; `sums`: scratch, [blocks_down of lockstep::kernel::BatchNormGrid, 2, width].
void column_sums(int64_t rows, int64_t width, Number number, const void* values, float* sums, void* out,
                 cudaStream_t stream);

void gelu(int64_t count, Number number, const void* values, void* out, cudaStream_t stream);

struct GeluBackward {
  int64_t rows, width;
  const void* gradient;
  const void* input;
  void* of_input;
  void* of_bias;  // [width], in the type of the values
  float* sums;    // scratch, as column_sums
};
void gelu_backward(const GeluBackward& call, Number number, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
