// SPDX-License-Identifier: Apache-2.0
// Inside of the .cu files: eight neighbouring numbers of 16 bit, which a thread reads and writes at once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "plugins/cuda/number.h"

namespace lockstep_cuda_internal {

constexpr int kEight = 8;

// Read once and by nobody else of the kernel: past the first cache.
__device__ __forceinline__ uint4 load(const void* from) {
  return __ldg(static_cast<const uint4*>(from));
}

__device__ __forceinline__ void store(void* to, const uint4& eight) {
  *static_cast<uint4*>(to) = eight;
}

template <class Value>
__device__ __forceinline__ void unpack(const uint4& eight, float (&to)[kEight]) {
  const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, __nv_bfloat16>) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    } else {
      const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
      to[2 * i] = pair.x;
      to[2 * i + 1] = pair.y;
    }
  }
}

template <class Value>
__device__ __forceinline__ uint4 pack(const float (&from)[kEight]) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<Value, __nv_bfloat16>) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    } else {
      const __half2 pair = __floats2half2_rn(from[2 * i], from[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(kernel) + ": " + cudaGetErrorString(error));
}

// Calls `work` with a null pointer to the type of the numbers.
template <class Work>
void for_16_bit(Number number, const Work& work) {
  if (number == Number::bf16) return work(static_cast<__nv_bfloat16*>(nullptr));
  if (number == Number::fp16) return work(static_cast<__half*>(nullptr));
  throw std::runtime_error("this kernel takes bf16 and fp16");
}

}  // namespace lockstep_cuda_internal
