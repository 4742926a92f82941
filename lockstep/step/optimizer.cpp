// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/optimizer.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {

using base::Blame;
using base::Error;
using base::text;

namespace {

// The same element at the same place of both storages; the stride of a dim of size 1 means nothing.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

}  // namespace

Optimizer::Optimizer(const spec::Optimizer& options, std::vector<model::Named> parameters)
    : options_(options), parameters_(std::move(parameters)), num_steps_(at::zeros({}, at::kLong)) {
  std::vector<size_t> decayed;
  std::vector<size_t> others;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool decay = options.decay_norm_and_bias || parameters_[i].tensor.dim() > 1;
    (decay ? decayed : others).push_back(i);
  }
  add_group(options.weight_decay, decayed);
  add_group(0, others);
}

void Optimizer::add_group(double weight_decay, const std::vector<size_t>& members) {
  if (members.empty()) return;
  Group group;
  group.weight_decay = weight_decay;
  group.members = members;
  const bool adamw = options_.name == spec::OptimizerName::adamw;
  for (const size_t i : members) {
    const at::Tensor parameter = parameters_[i].tensor.detach();  // shares the storage, outside autograd
    group.parameters.push_back(parameter);
    if (adamw || options_.momentum != 0) group.first.push_back(at::zeros_like(parameter));
    if (!adamw) continue;
    group.second.push_back(at::zeros_like(parameter));
    group.steps.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
  }
  groups_.push_back(std::move(group));
}

void Optimizer::step_sgd(Group& group, std::vector<at::Tensor>& gradients, double lr) const {
  const bool first = num_steps_.item<int64_t>() == 0;
  at::_fused_sgd_(group.parameters, gradients, group.first, group.weight_decay, options_.momentum, lr,
                  /*dampening=*/0, options_.nesterov, /*maximize=*/false, first);
}

void Optimizer::step_adamw(Group& group, std::vector<at::Tensor>& gradients, double lr) const {
  for (auto& count : group.steps) count.add_(1);
  at::_fused_adamw_(group.parameters, gradients, group.first, group.second, {}, group.steps, lr, options_.beta1,
                    options_.beta2, group.weight_decay, options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

void Optimizer::step(double lr) {
  for (auto& group : groups_) {
    std::vector<at::Tensor> gradients;
    for (const size_t i : group.members) {
      gradients.push_back(parameters_[i].tensor.grad());
      base::ensure(gradients.back().defined(), text(parameters_[i].name, " has a gradient"));
      // The fused kernels walk the storages side by side: autograd keeps a gradient in its parameter's layout.
      base::ensure(same_layout(gradients.back(), parameters_[i].tensor),
                   text("the gradient of ", parameters_[i].name, " lies as the parameter does"));
    }
    if (options_.name == spec::OptimizerName::sgd) {
      step_sgd(group, gradients, lr);
    } else {
      step_adamw(group, gradients, lr);
    }
  }
  num_steps_.add_(1);
}

void Optimizer::clear_gradients() {
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& parameter : parameters_) all.push_back(parameter.tensor.grad());
  return all;
}

std::vector<model::Named> Optimizer::state() const {
  const bool adamw = options_.name == spec::OptimizerName::adamw;
  std::vector<model::Named> all{{"steps", num_steps_}};
  for (const auto& group : groups_) {
    for (size_t k = 0; k < group.members.size(); ++k) {
      const std::string& name = parameters_[group.members[k]].name;
      if (!group.first.empty()) all.push_back({text(adamw ? "exp_avg." : "momentum.", name), group.first[k]});
      if (adamw) all.push_back({text("exp_avg_sq.", name), group.second[k]});
    }
  }
  return all;
}

void Optimizer::load_state(const std::vector<model::Named>& state) {
  for (auto& wanted : this->state()) {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.name == wanted.name; });
    if (found == state.end() || found->tensor.sizes() != wanted.tensor.sizes()) {
      throw Error(Blame::user, text("the saved optimizer state has no fitting '", wanted.name, "'"),
                  "the checkpoint belongs to another model or optimizer: start a new run with --run");
    }
    wanted.tensor.copy_(found->tensor);
  }
  for (auto& group : groups_) {
    for (auto& count : group.steps) count.fill_(num_steps_.item<int64_t>());
  }
}

double global_norm(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return 0;
  return at::stack(at::_foreach_norm(tensors, 2)).norm().item<double>();
}

void clip_gradients(std::vector<at::Tensor>& gradients, double norm, double limit) {
  const double scale = limit / (norm + 1e-6);
  if (scale < 1) at::_foreach_mul_(gradients, scale);
}

}  // namespace lockstep::step
