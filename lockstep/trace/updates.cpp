// SPDX-License-Identifier: Apache-2.0
// What comes behind the gradients of a step (lockstep/kernel/update.h), with the tensors of the CUDA kernels
// (plugins/cuda/updates.cpp).
#include <optional>
#include <vector>

#include "lockstep/kernel/update_grid.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using at::Tensor;
using at::TensorList;
using forecast::OperatorClass;
using kernel::UpdateGrid;

Work lists_of(TensorList layers, int64_t more = 0) {
  return {.launches = UpdateGrid::launches(static_cast<int64_t>(layers.size())) + more};
}

void join(std::vector<Tensor>& all, TensorList more) {
  all.insert(all.end(), more.begin(), more.end());
}

Tensor gradient_norm(TensorList gradients) {
  int64_t chunks = 0;
  for (const Tensor& gradient : gradients) chunks += UpdateGrid::chunks(gradient.numel());
  Tensor norm = make({}, at::kFloat);
  const Tensor partial = make({chunks}, at::kFloat);
  ran("lockstep::gradient_norm", OperatorClass::reduction, gradients, {partial, norm}, lists_of(gradients, 1));
  return norm;
}

Tensor judge_step(const Tensor& totals, const Tensor& norm, const Tensor& finite,
                  const std::optional<Tensor>& /*scale*/, const Tensor& numbers, double /*clip_norm*/) {
  Tensor report = make({totals.numel() + 2}, at::kDouble);
  ran("lockstep::judge_step", OperatorClass::elementwise, {totals, norm, finite, numbers}, {report, numbers});
  return report;
}

void sgd_step(TensorList weights, TensorList gradients, TensorList momenta, TensorList copies, const Tensor& numbers,
              double /*rate*/, double /*weight_decay*/, double /*clip_value*/, double /*momentum*/, bool /*nesterov*/) {
  std::vector<Tensor> read{numbers}, written(copies.begin(), copies.end());
  for (const TensorList list : {weights, gradients, momenta}) join(read, list);
  for (const TensorList list : {weights, momenta}) join(written, list);
  ran("lockstep::sgd_step", OperatorClass::optimizer, read, written, lists_of(weights));
}

void adamw_step(TensorList weights, TensorList gradients, TensorList first, TensorList second, TensorList copies,
                const Tensor& numbers, double /*rate*/, double /*weight_decay*/, double /*clip_value*/,
                double /*beta1*/, double /*beta2*/, double /*epsilon*/) {
  std::vector<Tensor> read{numbers}, written(copies.begin(), copies.end());
  for (const TensorList list : {weights, gradients, first, second}) join(read, list);
  for (const TensorList list : {weights, first, second}) join(written, list);
  ran("lockstep::adamw_step", OperatorClass::optimizer, read, written, lists_of(weights));
}

void follow_average(TensorList averages, TensorList values, const Tensor& /*numbers*/) {
  std::vector<Tensor> read(averages.begin(), averages.end());
  join(read, values);
  ran("lockstep::follow_average", OperatorClass::optimizer, read, averages, lists_of(averages));
}

}  // namespace

void register_updates(torch::Library& library) {
  library.impl("gradient_norm", &gradient_norm);
  library.impl("judge_step", &judge_step);
  library.impl("sgd_step", &sgd_step);
  library.impl("adamw_step", &adamw_step);
  library.impl("follow_average", &follow_average);
}

}  // namespace lockstep::trace
