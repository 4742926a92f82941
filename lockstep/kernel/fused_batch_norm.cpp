// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/fused_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

namespace lockstep::kernel {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using BatchNormResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using BatchNormForward = BatchNormResults(const Tensor&, const MaybeTensor&, const Tensor&, const Tensor&,
                                          const Tensor&, const Tensor&, double, double, bool);
using BatchNormBackward = BatchNormResults(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, const Tensor&, bool);

constexpr int64_t kMaskBits = 8;  // of a byte of the mask, lowest first: neighbours in memory, channels last

Tensor mask_values(const Tensor& like) {
  return at::empty({like.numel() / kMaskBits}, like.options().dtype(at::kByte));
}

Tensor weights_of_bits() {
  return at::ones({1}, at::kByte).bitwise_left_shift(at::arange(kMaskBits, at::kByte));  // 1, 2, 4, ...
}

// [elements / 8] from [rows, channels, height, width], and back.
Tensor pack_mask(const Tensor& positive) {
  const Tensor flat = positive.permute({0, 2, 3, 1}).contiguous().view({-1, kMaskBits});
  return flat.to(at::kByte).mul(weights_of_bits()).sum(1, /*keepdim=*/false, at::kByte);
}

Tensor unpack_mask(const Tensor& mask, const Tensor& like) {
  const Tensor bits = mask.unsqueeze(1).bitwise_and(weights_of_bits()).ne(0);
  return bits.view({like.size(0), like.size(2), like.size(3), like.size(1)}).permute({0, 3, 1, 2});
}

// The reference: libtorch's operators one after the other.
BatchNormResults batch_norm_forward_cpu(const Tensor& input, const MaybeTensor& added, const Tensor& weight,
                                        const Tensor& bias, const Tensor& running_mean, const Tensor& running_variance,
                                        double momentum, double epsilon, bool relu) {
  auto [output, mean, inverse] =
      at::native_batch_norm(input, weight, bias, running_mean, running_variance, true, momentum, epsilon);
  if (added) output = output.add(*added);
  Tensor mask = at::empty({0}, input.options().dtype(at::kByte));
  if (relu && added) mask = pack_mask(output.gt(0));
  return {relu ? output.relu() : output, mean, inverse, mask};
}

BatchNormResults batch_norm_backward_cpu(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                         const Tensor& bias, const Tensor& mean, const Tensor& inverse,
                                         const Tensor& mask, bool relu) {
  Tensor reaching = gradient;
  const auto by_channel = [](const Tensor& values) { return values.view({1, -1, 1, 1}); };
  if (mask.numel() > 0) {
    reaching = gradient.mul(unpack_mask(mask, input));
  } else if (relu) {
    const Tensor scale = weight * inverse;
    reaching = gradient.mul((input * by_channel(scale) + by_channel(bias - mean * scale)).gt(0));
  }
  auto [of_input, of_weight, of_bias] =
      at::native_batch_norm_backward(reaching.contiguous(input.suggest_memory_format()), input, weight, {}, {}, mean,
                                     inverse, true, 0, {true, true, true});
  Tensor of_added = mask.numel() > 0 ? reaching : at::empty({0}, input.options());
  return {of_input, of_weight, of_bias, of_added};
}

BatchNormResults batch_norm_forward_meta(const Tensor& input, const MaybeTensor& added, const Tensor& weight,
                                         const Tensor& /*bias*/, const Tensor& /*running_mean*/,
                                         const Tensor& /*running_variance*/, double /*momentum*/, double /*epsilon*/,
                                         bool relu) {
  Tensor mask = relu && added ? mask_values(input) : at::empty({0}, input.options().dtype(at::kByte));
  return {at::empty_like(input), at::empty_like(weight), at::empty_like(weight), mask};
}

BatchNormResults batch_norm_backward_meta(const Tensor& /*gradient*/, const Tensor& input, const Tensor& weight,
                                          const Tensor& /*bias*/, const Tensor& /*mean*/, const Tensor& /*inverse*/,
                                          const Tensor& mask, bool /*relu*/) {
  Tensor of_added = mask.numel() > 0 ? at::empty_like(input) : at::empty({0}, input.options());
  return {at::empty_like(input), at::empty_like(weight), at::empty_like(weight), of_added};
}

class FusedBatchNormFunction final : public torch::autograd::Function<FusedBatchNormFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const MaybeTensor& added,
                        const Tensor& weight, const Tensor& bias, const FusedBatchNorm& call) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::fused_batch_norm", "").typed<BatchNormForward>();
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [output, mean, inverse, mask] = operation.call(input, added, weight, bias, call.running_mean,
                                                        call.running_variance, call.momentum, call.epsilon, call.relu);
    context->save_for_backward({input, weight, bias, mean, inverse, mask});
    context->saved_data["relu"] = call.relu;
    context->saved_data["added"] = added.has_value();
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    static const auto operation = c10::Dispatcher::singleton()
                                      .findSchemaOrThrow("lockstep::fused_batch_norm_backward", "")
                                      .typed<BatchNormBackward>();
    const auto saved = context->get_saved_variables();
    const bool relu = context->saved_data["relu"].toBool(), added = context->saved_data["added"].toBool();
    auto [of_input, of_weight, of_bias, of_added] =
        operation.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5], relu);
    if (!relu) of_added = gradients[0];
    return {of_input, added ? of_added : Tensor(), of_weight, of_bias, Tensor()};
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def(
      "fused_batch_norm(Tensor input, Tensor? added, Tensor weight, Tensor bias, Tensor(a!) running_mean, "
      "Tensor(b!) running_variance, float momentum, float epsilon, bool relu) -> (Tensor, Tensor, Tensor, Tensor)");
  library.def(
      "fused_batch_norm_backward(Tensor gradient, Tensor input, Tensor weight, Tensor bias, Tensor mean, Tensor "
      "inverse, Tensor mask, bool relu) -> (Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("fused_batch_norm", &batch_norm_forward_cpu);
  library.impl("fused_batch_norm_backward", &batch_norm_backward_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("fused_batch_norm", &batch_norm_forward_meta);
  library.impl("fused_batch_norm_backward", &batch_norm_backward_meta);
}

bool takes_fused_batch_norm(const at::Tensor& input) {
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::fused_batch_norm", "");
  const auto type = input.scalar_type();
  return input.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) && input.dim() == 4 && input.numel() > 0 &&
         input.size(1) % kMaskBits == 0 && input.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         operation.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

at::Tensor fused_batch_norm(const FusedBatchNorm& call) {
  const MaybeTensor added = call.added.defined() ? MaybeTensor(call.added) : std::nullopt;
  return FusedBatchNormFunction::apply(call.input, added, call.weight, call.bias, call);
}

}  // namespace lockstep::kernel
