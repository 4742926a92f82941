// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/cuda/number.h"

// The gates of an LSTM on maps, channels last; lockstep/kernel/lstm_gates.h says what they compute. Pointers into GPU
// memory; sums, bias, peepholes, gates and hidden states are of one type, cells fp32.
namespace lockstep_cuda_internal {

struct LstmForward {
  int64_t pixels;  // of all samples
  int channels;
  const void* input_sums;  // [pixels, 4 channels]; null: none
  const void* state_sums;  // likewise
  const void* bias;        // [4 channels], where there are no input sums
  const float* cells;      // [pixels, channels]
  const void* peepholes;   // [3, channels]
  void* hidden;
  float* cells_out;
  void* gates;  // [pixels, 4 channels]; null: not kept
};
void lstm_gates(const LstmForward& call, Number number, cudaStream_t stream);

struct LstmBackward {
  int64_t pixels;
  int channels;
  const void* of_hidden;
  const void* gates;
  const float* before;
  const float* after;
  const void* peepholes;
  void* of_sums;
  float* of_cells;      // in and out
  float* of_peepholes;  // added to
  float* scratch;       // LstmGrid::sums()
};
void lstm_gates_backward(const LstmBackward& call, Number number, cudaStream_t stream);

}  // namespace lockstep_cuda_internal
