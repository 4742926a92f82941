// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

// The gates of an LSTM with peepholes, on maps: in the order input, forget, candidate, output along the channels of
// `sums`. All maps are [rows, channels (x 4), height, width], `sums` and what is written of one type, cells fp32.
//   i = s(z_i + p_i c)  f = s(z_f + p_f c)  g = tanh z_g  c' = f c + i g  o = s(z_o + p_o c')  h' = o tanh c'
struct LstmGates {
  at::Tensor input_sums;  // convolution of what comes in, with the bias; undefined: none
  at::Tensor state_sums;  // convolution of h; undefined: h is 0
  at::Tensor bias;        // [4 channels], where there are no input sums
  at::Tensor cells;       // c
  at::Tensor peepholes;   // [3, channels]: p_i, p_f, p_o
};
struct LstmResults {
  at::Tensor hidden, cells;  // h', c': written
  at::Tensor gates;          // i, f, g, o: written, unless undefined
};
// Without a gradient: the layer that runs the steps has its own.
void lstm_gates(const LstmGates& call, const LstmResults& results, bool fused);

struct LstmGradients {
  at::Tensor of_hidden;      // of h'
  at::Tensor gates;          // as they were written
  at::Tensor before, after;  // c, c'
  at::Tensor peepholes;
};
struct LstmGradientResults {
  at::Tensor of_sums;       // written: [rows, 4 channels, height, width]
  at::Tensor of_cells;      // fp32: that of c' comes in, that of c goes out
  at::Tensor of_peepholes;  // fp32 [3, channels]: added to
};
void lstm_gates_backward(const LstmGradients& call, const LstmGradientResults& results, bool fused);

// Whether the GPU's kernels are there and take maps like this one: channels last, not empty.
bool takes_lstm_gates(const at::Tensor& hidden);

}  // namespace lockstep::kernel
