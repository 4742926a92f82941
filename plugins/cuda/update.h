// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "plugins/cuda/number.h"

// The GPU's half of lockstep/kernel/update.h. `numbers`: [lockstep::kernel::kStepNumbers] on the GPU.
namespace lockstep_cuda_internal {

struct UpdateLayer {
  float* weight;
  const void* gradient;
  float* first;  // moments; null: none
  float* second;
  void* copy;  // null: none
  int64_t count;
  Number gradient_number;
  Number copy_number;
  int first_block;  // of the launch; filled in there
  bool whole;       // every pointer stands where four elements can be read at once
};

struct UpdateRule {
  float rate = 1, weight_decay = 0, clip_value = 0;
  float momentum = 0;                       // sgd
  bool nesterov = false;                    // sgd
  float beta1 = 0, beta2 = 0, epsilon = 0;  // adamw
};
void sgd_step(std::span<UpdateLayer> layers, const UpdateRule& rule, const float* numbers, cudaStream_t stream);
void adamw_step(std::span<UpdateLayer> layers, const UpdateRule& rule, const float* numbers, cudaStream_t stream);

// Only gradient, count, gradient_number and whole count. `partial`: a float a chunk of each layer.
void gradient_norm(std::span<UpdateLayer> layers, float* partial, float* norm, cudaStream_t stream);
// averages: `weight`, values: `gradient`, both fp32.
void follow_average(std::span<UpdateLayer> layers, const float* numbers, cudaStream_t stream);

struct JudgeCall {
  const double* totals;
  int num_totals;
  const float* norm;
  const bool* finite;
  const float* scale;  // null: 1
  float clip_norm;
  float* numbers;
  double* report;  // [num_totals + 2]
};
void judge_step(const JudgeCall& call, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
