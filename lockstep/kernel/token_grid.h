// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// How the CUDA kernels for tokens cut [rows, width]: of the size alone, so that sums have the same bits on every GPU
// and the plan knows the scratch memory. Without libtorch, as CUDA's compiler reads it.
namespace lockstep::kernel {

struct TokenGrid {
  static constexpr int kVector = 8;          // columns of a thread
  static constexpr int kMostWidth = 2048;    // of a block, which has whole rows
  static constexpr int kAtOnce = 4;          // rows that a block has in flight
  static constexpr int kBackwardAtOnce = 2;  // likewise backward, where a thread needs more registers
  static constexpr int kProcessors = 132;    // of the largest GPUs: so many blocks, and four to eight times of it

  int64_t rows;
  int width;
  int threads;  // whole warps
  int blocks;   // of backward

  TokenGrid(int64_t of_rows, int64_t of_width) : rows(of_rows), width(static_cast<int>(of_width)) {
    threads = (width / kVector + 31) / 32 * 32;
    const int64_t needed = (rows + kBackwardAtOnce - 1) / kBackwardAtOnce;
    const int share = 768 / threads, most = kProcessors * (share < 4 ? 4 : share > 8 ? 8 : share);
    blocks = static_cast<int>(needed < 1 ? 1 : needed < most ? needed : most);
  }

  int64_t sums() const { return int64_t{2} * blocks * width; }  // floats of scratch
};

}  // namespace lockstep::kernel
