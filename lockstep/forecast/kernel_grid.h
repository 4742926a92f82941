// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// How our own CUDA kernels cut what they sum: of its size alone, so that sums have the same bits on every GPU and the
// plan knows the scratch memory. Without libtorch, as CUDA's compiler reads it.
namespace lockstep::forecast {

// The rows of a map, channels side by side: fused_batch_norm, column_sums.
struct BatchNormGrid {
  static constexpr int kThreads = 256;  // of a block
  static constexpr int kAtOnce = 4;     // rows that a thread has in flight
  static constexpr int kVector = 8;     // channels of a thread
  static constexpr int kMostVectors = 32;
  static constexpr int kBlocks = 528;  // of all together, about: four for each multiprocessor of the largest GPUs

  int64_t rows;
  int channels;
  int vectors;       // side by side in a block
  int rows_at_once;  // of a block
  int blocks_down, blocks_across;

  BatchNormGrid(int64_t of_rows, int64_t of_channels) : rows(of_rows), channels(static_cast<int>(of_channels)) {
    const int all = channels / kVector;
    blocks_across = (all + kMostVectors - 1) / kMostVectors;
    vectors = (all + blocks_across - 1) / blocks_across;
    rows_at_once = kThreads / vectors;
    const int64_t each = static_cast<int64_t>(rows_at_once) * kAtOnce;
    const int64_t needed = (rows + each - 1) / each;
    const int64_t most = kBlocks / blocks_across < 1 ? 1 : kBlocks / blocks_across;
    blocks_down = static_cast<int>(needed < 1 ? 1 : needed < most ? needed : most);
  }

  int64_t sums() const { return int64_t{2} * blocks_down * channels; }  // floats of scratch
};

// Tokens, [rows, width]: add_layer_norm.
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

}  // namespace lockstep::forecast
