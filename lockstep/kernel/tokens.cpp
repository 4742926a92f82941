// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/tokens.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "lockstep/forecast/kernel_grid.h"

namespace lockstep::kernel {
namespace {

using at::Tensor;
using forecast::TokenGrid;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NormResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using NormGradients = std::tuple<Tensor, Tensor, Tensor>;
using NormForward = NormResults(const Tensor&, const std::optional<Tensor>&, const Tensor&, const Tensor&, double);
using NormBackward = NormGradients(const std::optional<Tensor>&, const Tensor&, const Tensor&, const Tensor&,
                                   const Tensor&, const Tensor&);
using JoinQkv = Tensor(const Tensor&, const Tensor&, const Tensor&);
using ColumnSums = Tensor(const Tensor&);
using Gelu = Tensor(const Tensor&);
using GeluGradients = std::tuple<Tensor, Tensor>;
using GeluBackward = GeluGradients(const Tensor&, const Tensor&);

Tensor rows_of(const Tensor& tokens) {
  return at::empty({tokens.numel() / tokens.size(-1)}, tokens.options().dtype(at::kFloat));
}

// No branch: the sum is empty, and the input stands for it.
NormResults norm_forward_cpu(const Tensor& input, const std::optional<Tensor>& branch, const Tensor& weight,
                             const Tensor& bias, double epsilon) {
  const Tensor sum = branch ? input.add(*branch) : input;
  auto [output, mean, inverse] = at::native_layer_norm(sum, {sum.size(-1)}, weight, bias, epsilon);
  return {branch ? sum : at::empty({0}, input.options()), output, mean, inverse};
}

NormGradients norm_backward_cpu(const std::optional<Tensor>& of_sum, const Tensor& of_normalized, const Tensor& sum,
                                const Tensor& weight, const Tensor& mean, const Tensor& inverse) {
  auto [of_input, of_weight, of_bias] = at::native_layer_norm_backward(
      of_normalized, sum, {sum.size(-1)}, mean, inverse, weight, at::empty_like(weight), {true, true, true});
  return {of_sum ? of_input.add(*of_sum) : of_input, of_weight, of_bias};
}

NormResults norm_forward_meta(const Tensor& input, const std::optional<Tensor>& branch, const Tensor& /*weight*/,
                              const Tensor& /*bias*/, double /*epsilon*/) {
  return {branch ? at::empty_like(input) : at::empty({0}, input.options()), at::empty_like(input), rows_of(input),
          rows_of(input)};
}

NormGradients norm_backward_meta(const std::optional<Tensor>& /*of_sum*/, const Tensor& of_normalized,
                                 const Tensor& /*sum*/, const Tensor& weight, const Tensor& /*mean*/,
                                 const Tensor& /*inverse*/) {
  return {at::empty_like(of_normalized), at::empty_like(weight), at::empty_like(weight)};
}

std::vector<int64_t> joined_shape(const Tensor& part) {  // of [batch, heads, tokens, size]
  return {part.size(0), part.size(2), 3 * part.size(1) * part.size(3)};
}

Tensor join_qkv_cpu(const Tensor& query, const Tensor& key, const Tensor& value) {
  return at::stack({query, key, value}).permute({1, 3, 0, 2, 4}).reshape(joined_shape(query));
}

Tensor join_qkv_meta(const Tensor& query, const Tensor& /*key*/, const Tensor& /*value*/) {
  return at::empty(joined_shape(query), query.options());
}

Tensor column_sums_cpu(const Tensor& values) {
  return values.sum(0, /*keepdim=*/false, at::kFloat).to(values.scalar_type());
}

Tensor column_sums_meta(const Tensor& values) {
  return at::empty({values.size(1)}, values.options());
}

Tensor gelu_cpu(const Tensor& values) {
  return at::gelu(values);
}

Tensor gelu_meta(const Tensor& values) {
  return at::empty_like(values);
}

// Of [rows, width]: the gradient of the input, and its sums by column.
GeluGradients gelu_backward_cpu(const Tensor& gradient, const Tensor& input) {
  const Tensor of_input = at::gelu_backward(gradient, input);
  return {of_input, column_sums_cpu(of_input)};
}

GeluGradients gelu_backward_meta(const Tensor& /*gradient*/, const Tensor& input) {
  return {at::empty_like(input), at::empty({input.size(1)}, input.options())};
}

class AddLayerNorm final : public torch::autograd::Function<AddLayerNorm> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& input, const std::optional<Tensor>& branch,
                               const Tensor& weight, const Tensor& bias, double epsilon) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::add_layer_norm", "").typed<NormForward>();
    const at::AutoDispatchBelowADInplaceOrView below;
    context->set_materialize_grads(false);
    auto [sum, normalized, mean, inverse] = operation.call(input, branch, weight, bias, epsilon);
    if (!branch) sum = input.view(input.sizes());
    context->save_for_backward({branch ? sum : input, weight, mean, inverse});
    context->saved_data["branch"] = branch.has_value();
    return {sum, normalized};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::add_layer_norm_backward", "").typed<NormBackward>();
    const auto saved = context->get_saved_variables();
    const bool branch = context->saved_data["branch"].toBool();
    if (!gradients[1].defined()) return {gradients[0], branch ? gradients[0] : Tensor(), Tensor(), Tensor(), Tensor()};
    const std::optional<Tensor> of_sum = gradients[0].defined() ? std::optional(gradients[0]) : std::nullopt;
    auto [of_input, of_weight, of_bias] = operation.call(of_sum, gradients[1], saved[0], saved[1], saved[2], saved[3]);
    return {of_input, branch ? of_input : Tensor(), of_weight, of_bias, Tensor()};
  }
};

class SplitQkv final : public torch::autograd::Function<SplitQkv> {
 public:
  static variable_list forward(AutogradContext* /*context*/, const Tensor& qkv, int64_t heads) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const int64_t batch = qkv.size(0), tokens = qkv.size(1), size = qkv.size(2) / (3 * heads);
    const Tensor parts = qkv.view({batch, tokens, 3, heads, size}).permute({2, 0, 3, 1, 4});
    return {parts.select(0, 0), parts.select(0, 1), parts.select(0, 2)};
  }

  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::join_qkv", "").typed<JoinQkv>();
    return {operation.call(gradients[0], gradients[1], gradients[2]), Tensor()};
  }
};

class LinearFunction final : public torch::autograd::Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight, const Tensor& bias) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({input, weight});
    return at::linear(input, weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::column_sums", "").typed<ColumnSums>();
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1];
    const Tensor gradient = gradients[0].reshape({-1, weight.size(0)}), rows = input.reshape({-1, weight.size(1)});
    Tensor of_input = context->needs_input_grad(0) ? gradient.mm(weight).view(input.sizes()) : Tensor();
    Tensor of_weight = gradient.t().mm(rows);
    return {of_input, of_weight, operation.call(gradient)};
  }
};

class LinearGeluFunction final : public torch::autograd::Function<LinearGeluFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight, const Tensor& bias) {
    static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::gelu", "").typed<Gelu>();
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor before = at::linear(input, weight, bias);
    context->save_for_backward({input, weight, before});
    return operation.call(before);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::gelu_backward", "").typed<GeluBackward>();
    const auto saved = context->get_saved_variables();
    const Tensor &input = saved[0], &weight = saved[1];
    const Tensor before = saved[2].view({-1, weight.size(0)}), rows = input.reshape({-1, weight.size(1)});
    const auto [of_before, of_bias] = operation.call(gradients[0].reshape(before.sizes()), before);
    Tensor of_input = context->needs_input_grad(0) ? of_before.mm(weight).view(input.sizes()) : Tensor();
    return {of_input, of_before.t().mm(rows), of_bias};
  }
};

bool is_16_bit_on_gpu(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) && tensor.numel() > 0;
}

bool has_gpu_kernel(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "add_layer_norm(Tensor input, Tensor? branch, Tensor weight, Tensor bias, float epsilon) -> (Tensor, Tensor, "
      "Tensor, Tensor)");
  library.def(
      "add_layer_norm_backward(Tensor? of_sum, Tensor of_normalized, Tensor sum, Tensor weight, Tensor mean, Tensor "
      "inverse) -> (Tensor, Tensor, Tensor)");
  library.def("join_qkv(Tensor query, Tensor key, Tensor value) -> Tensor");
  library.def("column_sums(Tensor values) -> Tensor");
  library.def("gelu(Tensor values) -> Tensor");
  library.def("gelu_backward(Tensor gradient, Tensor input) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("add_layer_norm", &norm_forward_cpu);
  library.impl("add_layer_norm_backward", &norm_backward_cpu);
  library.impl("join_qkv", &join_qkv_cpu);
  library.impl("column_sums", &column_sums_cpu);
  library.impl("gelu", &gelu_cpu);
  library.impl("gelu_backward", &gelu_backward_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("add_layer_norm", &norm_forward_meta);
  library.impl("add_layer_norm_backward", &norm_backward_meta);
  library.impl("join_qkv", &join_qkv_meta);
  library.impl("column_sums", &column_sums_meta);
  library.impl("gelu", &gelu_meta);
  library.impl("gelu_backward", &gelu_backward_meta);
}

bool takes_add_layer_norm(const at::Tensor& input) {
  return is_16_bit_on_gpu(input) && has_gpu_kernel("lockstep::add_layer_norm") && input.is_contiguous() &&
         input.size(-1) % TokenGrid::kVector == 0 && input.size(-1) <= TokenGrid::kMostWidth;
}

SumAndNorm add_layer_norm(const at::Tensor& input, const at::Tensor& branch, const at::Tensor& weight,
                          const at::Tensor& bias, double epsilon) {
  const std::optional<Tensor> added = branch.defined() ? std::optional(branch) : std::nullopt;
  auto results = AddLayerNorm::apply(input, added, weight, bias, epsilon);
  return {results[0], results[1]};
}

bool takes_split_qkv(const at::Tensor& qkv, int64_t heads) {
  return is_16_bit_on_gpu(qkv) && has_gpu_kernel("lockstep::join_qkv") && qkv.dim() == 3 &&
         qkv.size(2) % (3 * heads * TokenGrid::kVector) == 0;
}

Heads split_qkv(const at::Tensor& qkv, int64_t heads) {
  auto parts = SplitQkv::apply(qkv, heads);
  return {parts[0], parts[1], parts[2]};
}

bool takes_linear(const at::Tensor& input, const at::Tensor& weight) {
  return is_16_bit_on_gpu(input) && has_gpu_kernel("lockstep::column_sums") &&
         weight.scalar_type() == input.scalar_type() && weight.size(0) % TokenGrid::kVector == 0 &&
         input.is_contiguous();
}

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return LinearFunction::apply(input, weight, bias);
}

at::Tensor linear_gelu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return LinearGeluFunction::apply(input, weight, bias);
}

}  // namespace lockstep::kernel
