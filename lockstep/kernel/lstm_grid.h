// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// How the CUDA kernel of an LSTM's gates, backward, cuts [pixels, channels]: of the size alone, so that sums have the
// same bits on every GPU and the plan knows the scratch memory. Without libtorch, as CUDA's compiler reads it.
namespace lockstep::kernel {

struct LstmGrid {
  static constexpr int kThreads = 256;      // of a block
  static constexpr int kMostBlocks = 1056;  // eight for each processor of the largest GPUs

  int64_t pixels;
  int channels;
  int lanes;   // channels side by side in a block
  int rows;    // pixels side by side in a block
  int blocks;  // each has every blocks-th group of rows

  LstmGrid(int64_t of_pixels, int64_t of_channels) : pixels(of_pixels), channels(static_cast<int>(of_channels)) {
    lanes = channels < kThreads ? channels : kThreads;
    rows = kThreads / lanes;
    const int64_t needed = (pixels + rows - 1) / rows;
    blocks = static_cast<int>(needed < 1 ? 1 : needed < kMostBlocks ? needed : kMostBlocks);
  }

  int64_t sums() const { return int64_t{3} * blocks * channels; }  // floats of scratch
};

}  // namespace lockstep::kernel
