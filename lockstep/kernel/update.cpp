// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/update.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace lockstep::kernel {
namespace {

using at::Tensor;
using at::TensorList;
using MaybeScale = std::optional<Tensor>;
using NormOfAll = Tensor(TensorList);
using JudgeStep = Tensor(const Tensor&, const Tensor&, const Tensor&, const MaybeScale&, const Tensor&, double);
using SgdStep = void(TensorList, TensorList, TensorList, TensorList, const Tensor&, double, double, double, double,
                     bool);
using AdamwStep = void(TensorList, TensorList, TensorList, TensorList, TensorList, const Tensor&, double, double,
                       double, double, double, double);
using FollowAverage = void(TensorList, TensorList, const Tensor&);

double number_at(const Tensor& numbers, int which) {
  return static_cast<double>(numbers.const_data_ptr<float>()[which]);
}

// The references: libtorch's operators, layer by layer.
Tensor gradient_norm_cpu(TensorList gradients) {
  double sum = 0;
  for (const Tensor& gradient : gradients) sum += gradient.to(at::kDouble).pow(2).sum().item<double>();
  return at::empty({}, gradients[0].options().dtype(at::kFloat)).fill_(std::sqrt(sum));
}

Tensor judge_step_cpu(const Tensor& totals, const Tensor& norm, const Tensor& finite, const MaybeScale& scale,
                      const Tensor& numbers, double clip_norm) {
  auto* values = numbers.mutable_data_ptr<float>();
  const double inverse = scale ? 1 / scale->item<double>() : 1, raw = norm.item<double>();
  double factor = inverse * static_cast<double>(values[kRowsFactor]);
  if (clip_norm > 0) factor *= std::min(1.0, clip_norm / (raw * factor + 1e-6));
  const bool taken = std::isfinite(totals[0].item<double>()) && std::isfinite(raw) && values[kRowsFactor] > 0;
  const bool steady = finite.item<bool>();
  values[kGradientFactor] = static_cast<float>(factor);
  values[kTaken] = taken ? 1 : 0;
  values[kAveraged] = taken && steady ? 1 : 0;
  Tensor report = at::empty({totals.numel() + 2}, totals.options());
  report.narrow(0, 0, totals.numel()).copy_(totals);
  report[totals.numel()] = raw;
  report[totals.numel() + 1] = steady ? 0 : 1;
  return report;
}

Tensor ready_gradient(const Tensor& gradient, const Tensor& numbers, double clip_value) {
  const Tensor ready = gradient.to(at::kFloat) * number_at(numbers, kGradientFactor);
  return clip_value > 0 ? ready.clamp(-clip_value, clip_value) : ready;
}

void put_copy(TensorList copies, size_t layer, const Tensor& weight) {
  if (copies[layer].numel() > 0) copies[layer].copy_(weight);
}

void sgd_step_cpu(TensorList weights, TensorList gradients, TensorList momenta, TensorList copies,
                  const Tensor& numbers, double rate, double weight_decay, double clip_value, double momentum,
                  bool nesterov) {
  if (number_at(numbers, kTaken) == 0) return;
  const double lr = rate * number_at(numbers, kLearningRate);
  for (size_t i = 0; i < weights.size(); ++i) {
    Tensor gradient = ready_gradient(gradients[i], numbers, clip_value);
    if (weight_decay != 0) gradient = gradient + weights[i] * weight_decay;
    if (!momenta.empty()) {
      momenta[i].mul_(momentum).add_(gradient);
      gradient = nesterov ? gradient + momenta[i] * momentum : momenta[i];
    }
    weights[i].sub_(gradient * lr);
    put_copy(copies, i, weights[i]);
  }
}

void adamw_step_cpu(TensorList weights, TensorList gradients, TensorList first, TensorList second, TensorList copies,
                    const Tensor& numbers, double rate, double weight_decay, double clip_value, double beta1,
                    double beta2, double epsilon) {
  if (number_at(numbers, kTaken) == 0) return;
  const double lr = rate * number_at(numbers, kLearningRate);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor gradient = ready_gradient(gradients[i], numbers, clip_value);
    weights[i].mul_(1 - lr * weight_decay);
    first[i].mul_(beta1).add_(gradient * (1 - beta1));
    second[i].mul_(beta2).add_(gradient * gradient * (1 - beta2));
    const Tensor width = second[i].sqrt() / number_at(numbers, kSecondCorrection) + epsilon;
    weights[i].sub_(first[i] / width * (lr / number_at(numbers, kFirstCorrection)));
    put_copy(copies, i, weights[i]);
  }
}

void follow_average_cpu(TensorList averages, TensorList values, const Tensor& numbers) {
  if (number_at(numbers, kAveraged) == 0) return;
  for (size_t i = 0; i < averages.size(); ++i) averages[i].lerp_(values[i], number_at(numbers, kAverageShare));
}

template <class Signature>
auto operation(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def("gradient_norm(Tensor[] gradients) -> Tensor");
  library.def(
      "judge_step(Tensor totals, Tensor norm, Tensor finite, Tensor? scale, Tensor(a!) numbers, float clip_norm) -> "
      "Tensor");
  library.def(
      "sgd_step(Tensor(a!)[] weights, Tensor[] gradients, Tensor(b!)[] momenta, Tensor(c!)[] copies, Tensor numbers, "
      "float rate, float weight_decay, float clip_value, float momentum, bool nesterov) -> ()");
  library.def(
      "adamw_step(Tensor(a!)[] weights, Tensor[] gradients, Tensor(b!)[] first, Tensor(c!)[] second, Tensor(d!)[] "
      "copies, Tensor numbers, float rate, float weight_decay, float clip_value, float beta1, float beta2, float "
      "epsilon) -> ()");
  library.def("follow_average(Tensor(a!)[] averages, Tensor[] values, Tensor numbers) -> ()");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("gradient_norm", &gradient_norm_cpu);
  library.impl("judge_step", &judge_step_cpu);
  library.impl("sgd_step", &sgd_step_cpu);
  library.impl("adamw_step", &adamw_step_cpu);
  library.impl("follow_average", &follow_average_cpu);
}

bool has_update_kernels() {
  const auto found = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::sgd_step", "");
  return found.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

// Written below autograd: no version of a weight counts up, so a copy of it knows when somebody else wrote it.
at::Tensor gradient_norm(const Tensors& gradients) {
  static const auto norm = operation<NormOfAll>("lockstep::gradient_norm");
  const at::AutoDispatchBelowADInplaceOrView below;
  return norm.call(gradients);
}

at::Tensor judge_step(const Judged& judged, const at::Tensor& numbers) {
  static const auto judge = operation<JudgeStep>("lockstep::judge_step");
  const at::AutoDispatchBelowADInplaceOrView below;
  const MaybeScale scale = judged.scale.defined() ? MaybeScale(judged.scale) : std::nullopt;
  return judge.call(judged.totals, judged.norm, judged.finite, scale, numbers, judged.clip_norm);
}

void sgd_step(const UpdatedLayers& layers, const at::Tensor& numbers, const SgdRule& rule) {
  static const auto step = operation<SgdStep>("lockstep::sgd_step");
  const at::AutoDispatchBelowADInplaceOrView below;
  step.call(layers.weights, layers.gradients, layers.first, layers.copies, numbers, layers.rate, layers.weight_decay,
            layers.clip_value, rule.momentum, rule.nesterov);
}

void adamw_step(const UpdatedLayers& layers, const at::Tensor& numbers, const AdamwRule& rule) {
  static const auto step = operation<AdamwStep>("lockstep::adamw_step");
  const at::AutoDispatchBelowADInplaceOrView below;
  step.call(layers.weights, layers.gradients, layers.first, layers.second, layers.copies, numbers, layers.rate,
            layers.weight_decay, layers.clip_value, rule.beta1, rule.beta2, rule.epsilon);
}

void follow_average(const Tensors& averages, const Tensors& values, const at::Tensor& numbers) {
  static const auto follow = operation<FollowAverage>("lockstep::follow_average");
  const at::AutoDispatchBelowADInplaceOrView below;
  follow.call(averages, values, numbers);
}

}  // namespace lockstep::kernel
