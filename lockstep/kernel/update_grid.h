// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// What the CUDA kernels that update weights share with their callers. Without libtorch, as CUDA's compiler reads it.
namespace lockstep::kernel {

// The numbers of a step, fp32 on the GPU: a captured step reads them there. Those before kHostNumbers are written by
// the host before the step, the others by judge_step.
enum StepNumber : int {
  kLearningRate,
  kRowsFactor,        // of the gradients: rows of the batch by rows that were read; 0: none was, and nothing is learnt
  kFirstCorrection,   // adamw: 1 - beta1^steps
  kSecondCorrection,  // adamw: sqrt(1 - beta2^steps)
  kAverageShare,      // of a moving average: 1 - decay
  kHostNumbers,
  kGradientFactor = kHostNumbers,  // loss scale, rows and clipping together
  kTaken,                          // 1: loss and gradients are finite
  kAveraged,                       // 1: and so are the batch norms' statistics
  kStepNumbers
};

struct UpdateGrid {
  static constexpr int kThreads = 256;
  static constexpr int kVector = 4;     // elements that a thread reads at once
  static constexpr int kChunk = 16384;  // elements of a block
  static constexpr int kLayers = 48;    // of a launch: its arguments, 4 KB at most, hold their list

  static constexpr int64_t chunks(int64_t elements) { return (elements + kChunk - 1) / kChunk; }
  static constexpr int64_t launches(int64_t layers) { return (layers + kLayers - 1) / kLayers; }
};

}  // namespace lockstep::kernel
