// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/max_pool.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernel/pool_grid.h"

namespace lockstep::kernel {
namespace {

using at::Tensor;
using Pooled = std::tuple<Tensor, Tensor>;
using PoolForward = Pooled(const Tensor&, int64_t, int64_t, int64_t, bool);
using PoolBackward = Tensor(const Tensor&, const Tensor&, at::IntArrayRef, int64_t, int64_t, int64_t);

// What at::max_pool2d_with_indices calls an index is the place in the map; ours is the place in the window.
Pooled pool_forward_cpu(const Tensor& input, int64_t size, int64_t stride, int64_t padding, bool ceil) {
  auto [output, indices] = at::max_pool2d_with_indices(input, size, stride, padding, 1, ceil);
  const int64_t width = input.size(3);
  const Tensor top = at::arange(output.size(2)).mul_(stride).sub_(padding).view({-1, 1});
  const Tensor left = at::arange(output.size(3)).mul_(stride).sub_(padding);
  const Tensor row = indices.div(width, "floor").sub(top), column = indices.remainder(width).sub(left);
  return {output, row.mul(size).add(column).to(at::kByte)};
}

Tensor pool_backward_cpu(const Tensor& gradient, const Tensor& places, at::IntArrayRef shape, int64_t size,
                         int64_t stride, int64_t padding) {
  const Tensor top = at::arange(gradient.size(2)).mul_(stride).sub_(padding).view({-1, 1});
  const Tensor left = at::arange(gradient.size(3)).mul_(stride).sub_(padding);
  const Tensor place = places.to(at::kLong);
  const Tensor indices = place.div(size, "floor").add(top).mul(shape[3]).add(place.remainder(size).add(left));
  const Tensor like = at::empty(shape, gradient.options(), at::MemoryFormat::ChannelsLast);
  const bool ceil = pooled_size(shape[2], size, stride, padding, false) < gradient.size(2) ||
                    pooled_size(shape[3], size, stride, padding, false) < gradient.size(3);
  return at::max_pool2d_with_indices_backward(gradient.contiguous(at::MemoryFormat::ChannelsLast), like, size, stride,
                                              padding, 1, ceil, indices.contiguous(at::MemoryFormat::ChannelsLast));
}

Pooled pool_forward_meta(const Tensor& input, int64_t size, int64_t stride, int64_t padding, bool ceil) {
  const std::vector<int64_t> shape{input.size(0), input.size(1),
                                   pooled_size(input.size(2), size, stride, padding, ceil),
                                   pooled_size(input.size(3), size, stride, padding, ceil)};
  return {at::empty(shape, input.options(), at::MemoryFormat::ChannelsLast),
          at::empty(shape, input.options().dtype(at::kByte), at::MemoryFormat::ChannelsLast)};
}

Tensor pool_backward_meta(const Tensor& gradient, const Tensor& /*places*/, at::IntArrayRef shape, int64_t /*size*/,
                          int64_t /*stride*/, int64_t /*padding*/) {
  return at::empty(shape, gradient.options(), at::MemoryFormat::ChannelsLast);
}

class MaxPoolFunction final : public torch::autograd::Function<MaxPoolFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, int64_t size, int64_t stride,
                        int64_t padding, bool ceil) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::max_pool", "").typed<PoolForward>();
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [output, places] = operation.call(input, size, stride, padding, ceil);
    context->save_for_backward({places});
    context->saved_data["shape"] = input.sizes().vec();
    context->saved_data["window"] = std::vector<int64_t>{size, stride, padding};
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    static const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::max_pool_backward", "").typed<PoolBackward>();
    const auto shape = context->saved_data["shape"].toIntVector(), window = context->saved_data["window"].toIntVector();
    Tensor of_input =
        operation.call(gradients[0], context->get_saved_variables()[0], shape, window[0], window[1], window[2]);
    return {of_input, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def("max_pool(Tensor input, int size, int stride, int padding, bool ceil) -> (Tensor, Tensor)");
  library.def(
      "max_pool_backward(Tensor gradient, Tensor places, int[] shape, int size, int stride, int padding) -> Tensor");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("max_pool", &pool_forward_cpu);
  library.impl("max_pool_backward", &pool_backward_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("max_pool", &pool_forward_meta);
  library.impl("max_pool_backward", &pool_backward_meta);
}

bool takes_max_pool(const at::Tensor& input) {
  static const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::max_pool", "");
  const auto type = input.scalar_type();
  return input.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) && input.dim() == 4 && input.numel() > 0 &&
         input.numel() < (int64_t{1} << 34) && input.size(1) % 8 == 0 &&
         input.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         operation.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

at::Tensor max_pool(const at::Tensor& input, const PoolWindow& window) {
  base::ensure(window.size * window.size <= 256, "a window has at most 256 places");
  return MaxPoolFunction::apply(input, window.size, window.stride, window.padding, window.ceil);
}

}  // namespace lockstep::kernel
