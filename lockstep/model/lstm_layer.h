// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::model {

// One layer of a ConvLSTM over all its time steps (Shi et al. 2015, arXiv 1506.04214, with a peephole per channel).
// Maps of all steps lie one after the other: [steps x rows, channels, height, width], step by step.
struct LstmLayer {
  at::Tensor input;          // undefined: nothing comes in
  at::Tensor hidden, cells;  // before the first step: [rows, channels, height, width]; cells are fp32; undefined: 0
  at::Tensor input_weight;   // [4 channels, in, k, k], where something comes in
  at::Tensor state_weight;   // [4 channels, channels, k, k]
  at::Tensor bias;           // [4 channels]
  at::Tensor peepholes;      // [3, channels]
  int64_t steps = 1;
  bool recompute = false;  // keep the states alone, and compute the gates of a step again in backward
  bool fused = false;      // our own operators, where they take the tensors
};
struct LstmStates {
  at::Tensor hidden;  // of all steps
  at::Tensor cells;   // of the last one
};
// The convolutions of the input are one, over all steps; so are, in backward, those of the weights' gradients.
// Differentiable in all tensors. REQUIRES: an input, or the first states
LstmStates run_lstm_layer(const LstmLayer& layer);

}  // namespace lockstep::model
