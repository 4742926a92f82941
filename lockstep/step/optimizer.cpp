// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/kernel/update.h"
#include "lockstep/step/chunk_norm.h"

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

Optimizer::Optimizer(const spec::Optimizer& options, std::vector<model::Named> parameters, Norms norms,
                     const Rates& rates)
    : options_(options),
      parameters_(std::move(parameters)),
      norms_(norms ? std::move(norms) : norms_of),
      num_steps_(at::zeros({}, at::kLong)) {
  struct Members {
    std::vector<size_t> decayed, others;
  };
  std::map<double, Members, std::greater<>> by_rate;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto rate = rates.find(parameters_[i].name);
    Members& members = by_rate[rate == rates.end() ? 1 : rate->second];
    const bool decay = options.decay_norm_and_bias || parameters_[i].tensor.dim() > 1;
    (decay ? members.decayed : members.others).push_back(i);
  }
  for (const auto& [rate, members] : by_rate) {
    add_group(options.weight_decay, rate, members.decayed);
    add_group(0, rate, members.others);
  }
}

bool Optimizer::has_two_moments() const {
  return options_.name == spec::OptimizerName::adamw || options_.name == spec::OptimizerName::lamb;
}

bool Optimizer::is_rmsprop() const {
  return options_.name == spec::OptimizerName::rmsprop;
}

void Optimizer::add_group(double weight_decay, double rate, const std::vector<size_t>& members) {
  if (members.empty()) return;
  Group group;
  group.rate = rate;
  group.members = members;
  Layers& layers = group.layers;
  layers.weight_decay = weight_decay;
  for (const size_t i : members) {
    const at::Tensor parameter = parameters_[i].tensor.detach();  // shares the storage, outside autograd
    layers.parameters.push_back(parameter);
    layers.adapted.push_back(parameter.dim() > 1);
    const bool has_first = has_two_moments() || (options_.momentum != 0 && !is_rmsprop());
    if (has_first) layers.first.push_back(at::zeros_like(parameter));
    if (has_two_moments() || is_rmsprop()) layers.second.push_back(at::zeros_like(parameter));
    if (options_.name == spec::OptimizerName::adamw) {
      group.steps.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
    }
  }
  groups_.push_back(std::move(group));
}

void Optimizer::step_sgd(Group& group, double weight_decay, double lr) const {
  const bool first = num_steps_.item<int64_t>() == 0;
  at::_fused_sgd_(group.layers.parameters, group.layers.gradients, group.layers.first, weight_decay, options_.momentum,
                  lr, /*dampening=*/0, options_.nesterov, /*maximize=*/false, first);
}

void Optimizer::step_adamw(Group& group, double lr) const {
  Layers& layers = group.layers;
  for (auto& count : group.steps) count.add_(1);
  at::_fused_adamw_(layers.parameters, layers.gradients, layers.first, layers.second, {}, group.steps, lr,
                    options_.beta1, options_.beta2, layers.weight_decay, options_.epsilon, /*amsgrad=*/false,
                    /*maximize=*/false);
}

void Optimizer::check_gradient(const at::Tensor& gradient, size_t parameter) const {
  const model::Named& of = parameters_[parameter];
  base::ensure(gradient.defined(), text(of.name, " has a gradient"));
  // The fused kernels walk the storages side by side: autograd keeps a gradient in its parameter's layout.
  base::ensure(same_layout(gradient, of.tensor), text("the gradient of ", of.name, " lies as the parameter does"));
}

// Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning" (2012).
void Optimizer::step_rmsprop(Group& group, double lr) const {
  Layers& layers = group.layers;
  if (layers.weight_decay != 0) at::_foreach_add_(layers.gradients, layers.parameters, layers.weight_decay);
  at::_foreach_mul_(layers.second, options_.beta2);
  at::_foreach_addcmul_(layers.second, layers.gradients, layers.gradients, 1 - options_.beta2);
  std::vector<at::Tensor> step;
  step.reserve(layers.second.size());
  for (const auto& square : layers.second) step.push_back(square.clone());
  if (options_.epsilon_in_root) at::_foreach_add_(step, options_.epsilon);
  at::_foreach_sqrt_(step);
  if (!options_.epsilon_in_root) at::_foreach_add_(step, options_.epsilon);
  at::_foreach_reciprocal_(step);
  at::_foreach_mul_(step, layers.gradients);
  at::_foreach_add_(layers.parameters, step, -lr);
}

void Optimizer::take_gradients(Group& group) const {
  for (const size_t i : group.members) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    check_gradient(gradient, i);
    group.layers.gradients.push_back(gradient);
  }
}

void Optimizer::step(double lr) {
  for (auto& group : groups_) {
    take_gradients(group);
    switch (options_.name) {
      case spec::OptimizerName::sgd:
        step_sgd(group, group.layers.weight_decay, group.rate * lr);
        break;
      case spec::OptimizerName::adamw:
        step_adamw(group, group.rate * lr);
        break;
      case spec::OptimizerName::lars:
        scale_by_trust(group.layers, options_, norms_);
        step_sgd(group, /*weight_decay=*/0, group.rate * lr);
        break;
      case spec::OptimizerName::lamb:
        lamb_step(group.layers, options_, norms_, group.rate * lr, num_steps_.item<int64_t>() + 1);
        break;
      case spec::OptimizerName::rmsprop:
        step_rmsprop(group, group.rate * lr);
        break;
    }
    group.layers.gradients.clear();
  }
  num_steps_.add_(1);
}

bool Optimizer::can_step_there(const spec::Optimizer& options) {
  return options.name == spec::OptimizerName::sgd || options.name == spec::OptimizerName::adamw;
}

void Optimizer::step_there(const at::Tensor& numbers, const WeightCopies& copies, double clip_value) {
  for (auto& group : groups_) {
    kernel::UpdatedLayers layers{.weights = group.layers.parameters,
                                 .first = group.layers.first,
                                 .second = group.layers.second,
                                 .rate = group.rate,
                                 .weight_decay = group.layers.weight_decay,
                                 .clip_value = clip_value};
    for (const size_t i : group.members) {
      const at::Tensor& weight = parameters_[i].tensor;
      const at::Tensor gradient = copies.leaf(weight).grad();
      check_gradient(gradient, i);
      layers.gradients.push_back(gradient);
      if (group.copies.size() == group.members.size()) continue;
      const at::Tensor copy = copies.of(weight);
      group.copies.push_back(copy.defined() ? copy.detach() : at::empty({0}, weight.options()));
    }
    layers.copies = group.copies;
    if (options_.name == spec::OptimizerName::sgd) {
      kernel::sgd_step(layers, numbers, {.momentum = options_.momentum, .nesterov = options_.nesterov});
    } else {
      kernel::adamw_step(layers, numbers,
                         {.beta1 = options_.beta1, .beta2 = options_.beta2, .epsilon = options_.epsilon});
    }
  }
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
  const bool two = has_two_moments();
  std::vector<model::Named> all{{"steps", num_steps_}};
  for (const auto& group : groups_) {
    for (size_t k = 0; k < group.members.size(); ++k) {
      const std::string& name = parameters_[group.members[k]].name;
      const Layers& layers = group.layers;
      if (!layers.first.empty()) all.push_back({text(two ? "exp_avg." : "momentum.", name), layers.first[k]});
      if (!layers.second.empty()) all.push_back({text(two ? "exp_avg_sq." : "square_avg.", name), layers.second[k]});
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

Rates layer_rates(const spec::Optimizer& options, const model::Network& network) {
  Rates rates;
  if (options.layer_decay == 1) return rates;
  double rate = 1;
  for (auto block = network.blocks().rbegin(); block != network.blocks().rend(); ++block) {
    for (const auto& parameter : (*block)->parameters) rates[parameter.name] = rate;
    rate *= options.layer_decay;
  }
  return rates;
}

std::vector<double> norms_of(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return {};
  if (tensors[0].is_cpu()) return chunk_norms(tensors);  // the same bits with any number of threads
  const at::Tensor all = at::stack(at::_foreach_norm(tensors, 2)).to(at::kCPU, at::kDouble);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

double global_norm(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return 0;
  return at::stack(at::_foreach_norm(tensors, 2)).norm().item<double>();
}

at::Tensor global_norm_there(const std::vector<at::Tensor>& tensors) {
  return at::stack(at::_foreach_norm(tensors, 2)).norm();
}

void clip_gradients(std::vector<at::Tensor>& gradients, double norm, double limit) {
  const double scale = limit / (norm + 1e-6);
  if (scale < 1) at::_foreach_mul_(gradients, scale);
}

void clip_values(std::vector<at::Tensor>& gradients, double limit) {
  at::_foreach_clamp_min_(gradients, -limit);
  at::_foreach_clamp_max_(gradients, limit);
}

}  // namespace lockstep::step
