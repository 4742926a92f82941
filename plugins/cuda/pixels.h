// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// The GPU's half of lockstep::normalise (lockstep/kernel/pixels.h).
namespace lockstep_cuda_internal {

struct PixelNumbers {
  float factor[4], offset[4];  // by channel
  int channels;
};
void normalise(const PixelNumbers& numbers, int64_t count, const uint8_t* pixels, float* out, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
