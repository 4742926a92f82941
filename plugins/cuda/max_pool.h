// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/cuda/number.h"

// The GPU's half of lockstep::max_pool (lockstep/kernel/max_pool.h): maps lie channels last.
namespace lockstep_cuda_internal {

struct PoolShape {
  int images, channels, height, width, pooled_height, pooled_width, size, stride, padding;
};
// `places`: of the greatest in its window, counted along its rows.
void max_pool(const PoolShape& shape, Number number, const void* input, void* output, uint8_t* places,
              cudaStream_t stream);
void max_pool_backward(const PoolShape& shape, Number number, const void* gradient, const uint8_t* places,
                       void* of_input, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
