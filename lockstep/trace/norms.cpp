// SPDX-License-Identifier: Apache-2.0
// Batch and layer norms: outputs as libtorch's CUDA kernels and cuDNN make them.
#include <ATen/ops/empty_like.h>

#include "lockstep/base/error.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using forecast::OperatorClass;
using Optional = std::optional<at::Tensor>;

at::Tensor or_none(const Optional& tensor) {
  return tensor.value_or(at::Tensor());
}

// cuDNN's batch norm.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm(const at::Tensor& input,
                                                                            const at::Tensor& weight,
                                                                            const Optional& bias, const Optional& mean,
                                                                            const Optional& variance, bool training,
                                                                            double /*factor*/, double /*epsilon*/) {
  at::Tensor output = at::empty_like(input, input.options(), input.suggest_memory_format());
  at::Tensor saved_mean = make({training ? weight.numel() : 0}, weight.scalar_type());
  at::Tensor saved_variance = make({training ? weight.numel() : 0}, weight.scalar_type());
  at::Tensor reserve = make_bytes(0);
  ran("aten::cudnn_batch_norm", OperatorClass::batch_norm,
      {input, weight, or_none(bias), or_none(mean), or_none(variance)}, {output, saved_mean, saved_variance});
  return {output, saved_mean, saved_variance, reserve};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_batch_norm_backward(
    const at::Tensor& input, const at::Tensor& gradient, const at::Tensor& weight, const Optional& /*mean*/,
    const Optional& /*variance*/, const Optional& saved_mean, const Optional& saved_variance, double /*epsilon*/,
    const at::Tensor& /*reserve*/) {
  const at::Tensor lying = gradient.contiguous(input.suggest_memory_format());
  at::Tensor of_input = make(input.sizes(), input.scalar_type(), input.suggest_memory_format());
  at::Tensor of_weight = make(weight.sizes(), weight.scalar_type());
  at::Tensor of_bias = make(weight.sizes(), weight.scalar_type());
  ran("aten::cudnn_batch_norm_backward", OperatorClass::batch_norm_gradient,
      {input, lying, weight, or_none(saved_mean), or_none(saved_variance)}, {of_input, of_weight, of_bias});
  return {of_input, of_weight, of_bias};
}

// libtorch's own batch norm, which it takes for 16-bit channels-last inputs.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input, const Optional& weight,
                                                                 const Optional& bias, const Optional& mean,
                                                                 const Optional& variance, bool training,
                                                                 double /*momentum*/, double /*epsilon*/) {
  at::Tensor output = at::empty_like(input);
  at::Tensor saved_mean = make({input.size(1)}, at::kFloat);
  at::Tensor saved_inverse = make({input.size(1)}, at::kFloat);
  ran("aten::native_batch_norm", OperatorClass::batch_norm,
      {input, or_none(weight), or_none(bias), or_none(mean), or_none(variance)}, {output, saved_mean, saved_inverse},
      {.launches = training ? 4 : 1});
  return {output, saved_mean, saved_inverse};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm_backward(
    const at::Tensor& gradient, const at::Tensor& input, const Optional& weight, const Optional& mean,
    const Optional& variance, const Optional& saved_mean, const Optional& saved_inverse, bool /*train*/,
    double /*epsilon*/, std::array<bool, 3> wanted) {
  const int64_t channels = input.size(1);
  const at::Tensor sum = make({channels}, at::kFloat);
  const at::Tensor sum_of_products = make({channels}, at::kFloat);
  at::Tensor of_weight = wanted[1] ? make({channels}, at::kFloat) : at::Tensor();
  at::Tensor of_bias = wanted[2] ? make({channels}, at::kFloat) : at::Tensor();
  at::Tensor of_input = wanted[0] ? at::empty_like(input) : at::Tensor();
  ran("aten::native_batch_norm_backward", OperatorClass::batch_norm_gradient,
      {gradient, input, or_none(weight), or_none(mean), or_none(variance), or_none(saved_mean), or_none(saved_inverse)},
      {of_input, of_weight, of_bias}, {.launches = 2});
  return {of_input, of_weight, of_bias};
}

// The parts of a batch norm that ranks share.
std::tuple<at::Tensor, at::Tensor> batch_norm_stats(const at::Tensor& input, double /*epsilon*/) {
  at::Tensor mean = make({input.size(1)}, at::kFloat);
  at::Tensor inverse = make({input.size(1)}, at::kFloat);
  ran("aten::batch_norm_stats", OperatorClass::batch_norm, {input}, {mean, inverse});
  return {mean, inverse};
}

at::Tensor batch_norm_elemt(const at::Tensor& input, const Optional& weight, const Optional& bias,
                            const at::Tensor& mean, const at::Tensor& inverse, double /*epsilon*/) {
  at::Tensor output = at::empty_like(input);
  ran("aten::batch_norm_elemt", OperatorClass::batch_norm, {input, or_none(weight), or_none(bias), mean, inverse},
      {output});
  return output;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_backward_reduce(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& inverse,
    const Optional& /*weight*/, bool for_input, bool for_weight, bool for_bias) {
  const int64_t channels = input.size(1);
  const auto one = [&](bool wanted) { return wanted ? make({channels}, at::kFloat) : at::Tensor(); };
  at::Tensor sum = one(for_input);
  at::Tensor sum_of_products = one(for_input);
  at::Tensor of_weight = one(for_weight);
  at::Tensor of_bias = one(for_bias);
  ran("aten::batch_norm_backward_reduce", OperatorClass::batch_norm_gradient, {gradient, input, mean, inverse},
      {sum, sum_of_products, of_weight, of_bias});
  return {sum, sum_of_products, of_weight, of_bias};
}

at::Tensor batch_norm_backward_elemt(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean,
                                     const at::Tensor& inverse, const Optional& weight, const at::Tensor& sum,
                                     const at::Tensor& sum_of_products, const at::Tensor& count) {
  at::Tensor of_input = at::empty_like(input);
  ran("aten::batch_norm_backward_elemt", OperatorClass::batch_norm_gradient,
      {gradient, input, mean, inverse, or_none(weight), sum, sum_of_products, count}, {of_input});
  return of_input;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm(const at::Tensor& input, at::IntArrayRef shape,
                                                                 const Optional& weight, const Optional& bias,
                                                                 double /*epsilon*/) {
  base::ensure(!weight || weight->scalar_type() == input.scalar_type(),
               "a GPU's layer norm has weights of its input's type");  // else the real one throws
  const at::Tensor lying = input.contiguous();
  std::vector<int64_t> rows(input.sizes().begin(), input.sizes().end());
  for (size_t i = rows.size() - shape.size(); i < rows.size(); ++i) rows[i] = 1;
  at::Tensor output = at::empty_like(lying);
  at::Tensor mean = make(rows, at::kFloat);
  at::Tensor deviation = make(rows, at::kFloat);
  ran("aten::native_layer_norm", OperatorClass::layer_norm, {lying, or_none(weight), or_none(bias)},
      {output, mean, deviation});
  return {output, mean, deviation};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm_backward(
    const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef /*shape*/, const at::Tensor& mean,
    const at::Tensor& deviation, const Optional& weight, const Optional& bias, std::array<bool, 3> wanted) {
  const at::Tensor lying = input.contiguous();
  const at::Tensor pushed = gradient.contiguous();
  at::Tensor of_input = wanted[0] ? at::empty_like(lying) : at::Tensor();
  at::Tensor of_weight = wanted[1] && weight ? at::empty_like(*weight) : at::Tensor();
  at::Tensor of_bias = wanted[2] && bias ? at::empty_like(*bias) : at::Tensor();
  ran("aten::native_layer_norm_backward", OperatorClass::layer_norm_gradient,
      {pushed, lying, mean, deviation, or_none(weight), or_none(bias)}, {of_input, of_weight, of_bias},
      {.launches = 2});
  return {of_input, of_weight, of_bias};
}

}  // namespace

void register_norms(torch::Library& library) {
  library.impl("cudnn_batch_norm", &cudnn_batch_norm);
  library.impl("cudnn_batch_norm_backward", &cudnn_batch_norm_backward);
  library.impl("native_batch_norm", &native_batch_norm);
  library.impl("native_batch_norm_backward", &native_batch_norm_backward);
  library.impl("batch_norm_stats", &batch_norm_stats);
  library.impl("batch_norm_elemt", &batch_norm_elemt);
  library.impl("batch_norm_backward_reduce", &batch_norm_backward_reduce);
  library.impl("batch_norm_backward_elemt", &batch_norm_backward_elemt);
  library.impl("native_layer_norm", &native_layer_norm);
  library.impl("native_layer_norm_backward", &native_layer_norm_backward);
}

}  // namespace lockstep::trace
