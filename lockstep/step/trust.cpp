// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/trust.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>

#include <cmath>

namespace lockstep::step {
namespace {

// Of the adapted entries, in order; `of` has one entry a parameter.
std::vector<at::Tensor> chosen(const std::vector<at::Tensor>& of, const std::vector<bool>& adapted) {
  std::vector<at::Tensor> some;
  for (size_t i = 0; i < of.size(); ++i) {
    if (adapted[i]) some.push_back(of[i]);
  }
  return some;
}

// One ratio a parameter. Parameters and directions are measured in one call: a sum over ranks costs one message.
template <class Ratio>
std::vector<at::Scalar> ratios(const Layers& layers, const std::vector<at::Tensor>& directions, const Norms& norms,
                               Ratio&& ratio) {
  std::vector<at::Tensor> measured = chosen(layers.parameters, layers.adapted);
  const size_t count = measured.size();
  for (auto& direction : chosen(directions, layers.adapted)) measured.push_back(std::move(direction));
  const std::vector<double> lengths = count > 0 ? norms(measured) : std::vector<double>();
  std::vector<at::Scalar> all;
  for (size_t i = 0, k = 0; i < directions.size(); ++i) {
    double one = 1;
    if (layers.adapted[i]) {
      const double weights = lengths[k];
      const double direction = lengths[count + k];
      if (weights > 0 && direction > 0) one = ratio(weights, direction);
      ++k;
    }
    all.emplace_back(one);
  }
  return all;
}

}  // namespace

void scale_by_trust(Layers& layers, const spec::Optimizer& options, const Norms& norms) {
  const auto all = ratios(layers, layers.gradients, norms, [&](double weights, double gradient) {
    return options.trust * weights / (gradient + layers.weight_decay * weights + options.epsilon);
  });
  if (layers.weight_decay != 0) at::_foreach_add_(layers.gradients, layers.parameters, layers.weight_decay);
  at::_foreach_mul_(layers.gradients, all);
}

void lamb_step(Layers& layers, const spec::Optimizer& options, const Norms& norms, double lr, int64_t step) {
  const double unbias_first = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double unbias_second = 1 - std::pow(options.beta2, static_cast<double>(step));
  at::_foreach_lerp_(layers.first, layers.gradients, 1 - options.beta1);
  at::_foreach_mul_(layers.second, options.beta2);
  at::_foreach_addcmul_(layers.second, layers.gradients, layers.gradients, 1 - options.beta2);
  std::vector<at::Tensor> update;  // the gradients stay as they are; this is their memory's worth once more
  for (const auto& second : layers.second) update.push_back(second.clone());
  at::_foreach_sqrt_(update);
  at::_foreach_mul_(update, 1 / std::sqrt(unbias_second));
  at::_foreach_add_(update, options.epsilon);
  at::_foreach_reciprocal_(update);
  at::_foreach_mul_(update, layers.first);
  at::_foreach_mul_(update, 1 / unbias_first);
  if (layers.weight_decay != 0) at::_foreach_add_(update, layers.parameters, layers.weight_decay);
  at::_foreach_mul_(update,
                    ratios(layers, update, norms, [](double weights, double length) { return weights / length; }));
  at::_foreach_add_(layers.parameters, update, -lr);
}

}  // namespace lockstep::step
