// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/cuda/number.h"

// The GPU's half of lockstep::fused_batch_norm (lockstep/kernel/fused_batch_norm.h). Maps of bf16 or fp16 lie channels
// last, as rows of all channels; statistics, weights and sums are fp32.
namespace lockstep_cuda_internal {

struct BatchNormShape {
  int64_t rows;      // images x height x width
  int64_t channels;  // a multiple of 8
};

struct BatchNormForward {
  BatchNormShape shape;
  const void* input;
  const void* added;  // null: nothing
  const float* weight;
  const float* bias;
  float* running_mean;
  float* running_variance;
  float momentum, epsilon;
  bool relu;
  void* output;
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  uint8_t* mask;   // with added and relu: a bit an element, whether the output is above 0
  float* sums;     // scratch, [blocks_down of lockstep::kernel::BatchNormGrid, 2, channels]
};
void batch_norm(const BatchNormForward& call, Number number, cudaStream_t stream);

struct BatchNormBackward {
  BatchNormShape shape;
  const void* gradient;
  int64_t gradient_stride;  // from row to row, in elements: a part of the channels of a larger map
  const void* input;
  const float* weight;
  const float* bias;
  const float* mean;
  const float* inverse;
  bool relu;
  const uint8_t* mask;  // null: what was above 0 is computed again
  void* of_input;
  void* of_added;  // with a mask: the gradient where it is set
  float* of_weight;
  float* of_bias;
  float* sums;  // scratch, likewise
};
void batch_norm_backward(const BatchNormBackward& call, Number number, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
