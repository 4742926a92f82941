// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/kernel/update_grid.h"

// What comes behind the gradients of a step, without the host: their norm, whether the step is taken, the optimizer
// over all layers in few launches, the moving average. `numbers` is [kStepNumbers] (update_grid.h). Weights, momenta
// and averages are fp32; gradients fp32 or 16 bit; all tensors of a layer lie alike.
namespace lockstep::kernel {

using Tensors = std::vector<at::Tensor>;

bool has_update_kernels();  // of the GPU

// The square root of the sum of all squares, fp32, a scalar there. REQUIRES: some.
at::Tensor gradient_norm(const Tensors& gradients);

struct Judged {
  at::Tensor totals;      // double, [n]: the loss, then others
  at::Tensor norm;        // of the gradients as they are, with the loss scale
  at::Tensor finite;      // a truth: of the batch norms' statistics
  at::Tensor scale = {};  // of the loss; undefined: 1
  double clip_norm = 0;   // 0: no limit
};
// Writes what kHostNumbers and the following are for. Double, [n + 2]: the totals, the norm with the loss scale, and 0
// where the statistics are finite: all that a host must read of a step.
at::Tensor judge_step(const Judged& judged, const at::Tensor& numbers);

// Lists side by side, by layer.
struct UpdatedLayers {
  Tensors weights = {}, gradients = {};
  Tensors first = {}, second = {};  // moments; empty: the optimizer has none
  Tensors copies = {};  // of the weights in 16 bit, written in the same pass; one without elements: there is none
  double rate = 1;      // share of the learning rate
  double weight_decay = 0;
  double clip_value = 0;  // of each element of the gradient; 0: no limit
};

struct SgdRule {
  double momentum = 0;
  bool nesterov = false;
};
struct AdamwRule {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
// As torch.optim.SGD and AdamW; nothing where the step is not taken.
void sgd_step(const UpdatedLayers& layers, const at::Tensor& numbers, const SgdRule& rule);
void adamw_step(const UpdatedLayers& layers, const at::Tensor& numbers, const AdamwRule& rule);

// averages += share (values - averages), nothing where the step is not taken.
void follow_average(const Tensors& averages, const Tensors& values, const at::Tensor& numbers);

}  // namespace lockstep::kernel
