// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "lockstep/spec/job.h"

// One step length a layer, for large batches: LARS (You, Gitman and Ginsburg, 2017) and LAMB (You et al., 2019), equal
// to timm's (tests/oracles/optimizers.py). Norms and biases keep the plain step, as in both papers.
namespace lockstep::step {

// The 2-norm of each tensor, on the host. Ranks that hold parts of the tensors give one that adds up over all parts:
// then the ratios are those of the whole layers.
using Norms = std::function<std::vector<double>(const std::vector<at::Tensor>&)>;

// Lists side by side, one entry a parameter.
struct Layers {
  std::vector<at::Tensor> parameters, gradients, first, second;
  std::vector<bool> adapted;  // false: a norm or a bias, whose ratio is 1
  double weight_decay = 0;
};

// Makes each gradient `ratio * (gradient + weight_decay * parameter)`, with
// ratio = trust * |parameter| / (|gradient| + weight_decay * |parameter| + epsilon): the rest of LARS is SGD without
// decay. A layer whose parameters or gradients are all zero has ratio 1.
void scale_by_trust(Layers& layers, const spec::Optimizer& options, const Norms& norms);

// The step number `step` (1, 2, ...) of LAMB: AdamW's direction with decay, as long as the layer's weights times lr.
void lamb_step(Layers& layers, const spec::Optimizer& options, const Norms& norms, double lr, int64_t step);

}  // namespace lockstep::step
