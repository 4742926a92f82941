// SPDX-License-Identifier: Apache-2.0
// Inside of the .cu files: the last sums over what blocks have added up, [blocks, 2, columns].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep_cuda_internal {

constexpr int kFold = 32;  // columns of a block of kFold x kFold threads

inline dim3 fold_blocks(int64_t columns) {
  return dim3(static_cast<unsigned>((columns + kFold - 1) / kFold));
}

inline dim3 fold_threads() {
  return dim3(kFold, kFold);
}

__device__ inline int fold_column() {
  return static_cast<int>(blockIdx.x) * kFold + static_cast<int>(threadIdx.x);
}

// Both sums of a column, always in the same order; true for the threads that hold them.
__device__ inline bool fold(const float* sums, int blocks, int columns, float& first, float& second) {
  __shared__ float one[kFold][kFold + 1], two[kFold][kFold + 1];
  const int column = fold_column();
  first = 0;
  second = 0;
  if (column < columns) {
    for (int i = static_cast<int>(threadIdx.y); i < blocks; i += kFold) {
      first += sums[static_cast<int64_t>(i) * 2 * columns + column];
      second += sums[(static_cast<int64_t>(i) * 2 + 1) * columns + column];
    }
  }
  one[threadIdx.y][threadIdx.x] = first;
  two[threadIdx.y][threadIdx.x] = second;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return false;
  first = 0;
  second = 0;
#pragma unroll
  for (int i = 0; i < kFold; ++i) {
    first += one[i][threadIdx.x];
    second += two[i][threadIdx.x];
  }
  return true;
}

}  // namespace lockstep_cuda_internal
