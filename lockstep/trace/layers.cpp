// SPDX-License-Identifier: Apache-2.0
// The operators of the room kernel that networks are made of, with the outputs and scratch memory of their CUDA kernels
// (plugins/cuda/layers.cpp). They wait for memory alone: their bytes are those of every pass over a tensor.
#include <ATen/ops/empty_like.h>

#include <optional>
#include <tuple>
#include <vector>

#include "lockstep/forecast/kernel_grid.h"
#include "lockstep/kernel/lstm_grid.h"
#include "lockstep/kernel/pool_grid.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/simulated_device.h"

namespace lockstep::trace {
namespace {

using at::Tensor;
using forecast::BatchNormGrid;
using forecast::OperatorClass;
using forecast::TokenGrid;
using MaybeTensor = std::optional<Tensor>;

std::tuple<Tensor, Tensor, Tensor, Tensor> fused_batch_norm(const Tensor& input, const MaybeTensor& added,
                                                            const Tensor& weight, const Tensor& bias,
                                                            const Tensor& mean, const Tensor& variance,
                                                            double /*momentum*/, double /*epsilon*/, bool relu) {
  const Tensor more = added ? added->contiguous(at::MemoryFormat::ChannelsLast) : Tensor();
  Tensor output = at::empty_like(input), saved_mean = at::empty_like(weight), saved_inverse = at::empty_like(weight);
  Tensor mask = make_bytes(added && relu ? input.numel() / 8 : 0);
  const Tensor sums = make({BatchNormGrid(input.numel() / input.size(1), input.size(1)).sums()}, at::kFloat);
  ran("lockstep::fused_batch_norm", OperatorClass::elementwise,
      {input, input, more, weight, bias, mean, variance, sums}, {output, mask, sums, saved_mean, saved_inverse},
      {.shape = input.sizes().vec(), .launches = 3});
  return {output, saved_mean, saved_inverse, mask};
}

bool has_rows(const Tensor& map) {  // as plugins/cuda/layers.cpp
  const int64_t row = map.stride(3);
  return map.stride(1) == 1 && row >= map.size(1) && row % 8 == 0 && map.stride(2) == row * map.size(3) &&
         map.stride(0) == map.stride(2) * map.size(2) && map.storage_offset() % 8 == 0;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> fused_batch_norm_backward(const Tensor& gradient, const Tensor& input,
                                                                     const Tensor& weight, const Tensor& bias,
                                                                     const Tensor& mean, const Tensor& inverse,
                                                                     const Tensor& mask, bool /*relu*/) {
  const Tensor pushed = has_rows(gradient) ? gradient : gradient.contiguous(at::MemoryFormat::ChannelsLast);
  Tensor of_input = at::empty_like(input), of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  Tensor of_added = mask.numel() > 0 ? at::empty_like(input) : make({0}, input.scalar_type());
  const Tensor sums = make({BatchNormGrid(input.numel() / input.size(1), input.size(1)).sums()}, at::kFloat);
  ran("lockstep::fused_batch_norm_backward", OperatorClass::elementwise,
      {pushed, input, mask, pushed, input, mask, weight, bias, mean, inverse, sums},
      {of_input, of_added, sums, of_weight, of_bias}, {.shape = input.sizes().vec(), .launches = 3});
  return {of_input, of_weight, of_bias, of_added};
}

std::tuple<Tensor, Tensor> max_pool(const Tensor& input, int64_t size, int64_t stride, int64_t padding, bool ceil) {
  const auto pooled = [&](int64_t dim) { return kernel::pooled_size(input.size(dim), size, stride, padding, ceil); };
  const std::vector<int64_t> shape{input.size(0), input.size(1), pooled(2), pooled(3)};
  Tensor output = make(shape, input.scalar_type(), at::MemoryFormat::ChannelsLast);
  Tensor places = make(shape, at::kByte, at::MemoryFormat::ChannelsLast);
  ran("lockstep::max_pool", OperatorClass::elementwise, {input}, {output, places});
  return {output, places};
}

Tensor max_pool_backward(const Tensor& gradient, const Tensor& places, at::IntArrayRef shape, int64_t /*size*/,
                         int64_t /*stride*/, int64_t /*padding*/) {
  const Tensor pushed = gradient.contiguous(at::MemoryFormat::ChannelsLast);
  Tensor of_input = make(shape, gradient.scalar_type(), at::MemoryFormat::ChannelsLast);
  ran("lockstep::max_pool_backward", OperatorClass::elementwise, {pushed, places}, {of_input});
  return of_input;
}

Tensor one_a_row(const Tensor& tokens) {
  return make({tokens.numel() / tokens.size(-1)}, at::kFloat);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> add_layer_norm(const Tensor& input, const MaybeTensor& branch,
                                                          const Tensor& weight, const Tensor& bias,
                                                          double /*epsilon*/) {
  const Tensor more = branch ? branch->contiguous() : Tensor();
  Tensor sum = branch ? at::empty_like(input) : make({0}, input.scalar_type());
  Tensor normalized = at::empty_like(input), mean = one_a_row(input), inverse = one_a_row(input);
  ran("lockstep::add_layer_norm", OperatorClass::elementwise, {input, more, weight, bias},
      {sum, normalized, mean, inverse});
  return {sum, normalized, mean, inverse};
}

std::tuple<Tensor, Tensor, Tensor> add_layer_norm_backward(const MaybeTensor& of_sum, const Tensor& of_normalized,
                                                           const Tensor& sum, const Tensor& weight, const Tensor& mean,
                                                           const Tensor& inverse) {
  const Tensor passed = of_sum ? of_sum->contiguous() : Tensor(), pushed = of_normalized.contiguous();
  Tensor of_input = at::empty_like(sum), of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  const Tensor sums = make({TokenGrid(sum.numel() / sum.size(-1), sum.size(-1)).sums()}, at::kFloat);
  ran("lockstep::add_layer_norm_backward", OperatorClass::elementwise,
      {passed, pushed, sum, weight, mean, inverse, sums}, {of_input, of_weight, of_bias, sums},
      {.shape = sum.sizes().vec(), .launches = 2});
  return {of_input, of_weight, of_bias};
}

Tensor head_part(const Tensor& part) {  // as plugins/cuda/layers.cpp
  const auto even = [](int64_t value) { return value % 8 == 0; };
  const bool fits = part.stride(3) == 1 && even(part.stride(0)) && even(part.stride(1)) && even(part.stride(2)) &&
                    even(part.storage_offset());
  return fits ? part : part.contiguous();
}

Tensor join_qkv(const Tensor& query, const Tensor& key, const Tensor& value) {
  const Tensor parts[] = {head_part(query), head_part(key), head_part(value)};
  Tensor output = make({query.size(0), query.size(2), 3 * query.size(1) * query.size(3)}, query.scalar_type());
  ran("lockstep::join_qkv", OperatorClass::copy, {parts[0], parts[1], parts[2]}, {output});
  return output;
}

Tensor column_sums(const Tensor& values) {
  const Tensor from = values.contiguous();
  Tensor result = make({values.size(1)}, values.scalar_type());
  const Tensor sums = make({BatchNormGrid(values.size(0), values.size(1)).sums()}, at::kFloat);
  ran("lockstep::column_sums", OperatorClass::elementwise, {from, sums}, {result, sums},
      {.shape = values.sizes().vec(), .launches = 2});
  return result;
}

Tensor gelu(const Tensor& values) {
  const Tensor from = values.contiguous();
  Tensor result = at::empty_like(from);
  ran("lockstep::gelu", OperatorClass::elementwise, {from}, {result});
  return result;
}

std::tuple<Tensor, Tensor> gelu_backward(const Tensor& gradient, const Tensor& input) {
  const Tensor pushed = gradient.contiguous(), from = input.contiguous();
  Tensor of_input = at::empty_like(from), of_bias = make({input.size(1)}, input.scalar_type());
  const Tensor sums = make({BatchNormGrid(input.size(0), input.size(1)).sums()}, at::kFloat);
  ran("lockstep::gelu_backward", OperatorClass::elementwise, {pushed, from, sums}, {of_input, of_bias, sums},
      {.shape = input.sizes().vec(), .launches = 2});
  return {of_input, of_bias};
}

Tensor normalise(const Tensor& pixels, at::ArrayRef<double> /*factor*/, at::ArrayRef<double> /*offset*/) {
  const Tensor from = pixels.contiguous();
  Tensor result = make(pixels.sizes(), at::kFloat);
  ran("lockstep::normalise", OperatorClass::elementwise, {from}, {result});
  return result;
}

// They write in place: the outputs are there, and a library takes those by value.
// NOLINTBEGIN(performance-unnecessary-value-param)
void lstm_gates(const MaybeTensor& input_sums, const MaybeTensor& state_sums, const MaybeTensor& bias,
                const Tensor& cells, const Tensor& peepholes, Tensor hidden, Tensor cells_out, MaybeTensor gates) {
  const auto or_none = [](const MaybeTensor& tensor) { return tensor.value_or(Tensor()); };
  ran("lockstep::lstm_gates", OperatorClass::elementwise,
      {or_none(input_sums), or_none(state_sums), or_none(bias), cells, peepholes}, {hidden, cells_out, or_none(gates)});
}

void lstm_gates_backward(const Tensor& of_hidden, const Tensor& gates, const Tensor& before, const Tensor& after,
                         const Tensor& peepholes, Tensor of_sums, Tensor of_cells, Tensor of_peepholes) {
  const Tensor pushed = of_hidden.contiguous(at::MemoryFormat::ChannelsLast);
  const Tensor sums = make({kernel::LstmGrid(before.numel() / before.size(1), before.size(1)).sums()}, at::kFloat);
  ran("lockstep::lstm_gates_backward", OperatorClass::elementwise,
      {pushed, gates, before, after, peepholes, of_cells, sums}, {of_sums, of_cells, sums, of_peepholes},
      {.launches = 2});
}
// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

void register_layers(torch::Library& library) {
  library.impl("fused_batch_norm", &fused_batch_norm);
  library.impl("fused_batch_norm_backward", &fused_batch_norm_backward);
  library.impl("max_pool", &max_pool);
  library.impl("max_pool_backward", &max_pool_backward);
  library.impl("add_layer_norm", &add_layer_norm);
  library.impl("add_layer_norm_backward", &add_layer_norm_backward);
  library.impl("join_qkv", &join_qkv);
  library.impl("column_sums", &column_sums);
  library.impl("gelu", &gelu);
  library.impl("gelu_backward", &gelu_backward);
  library.impl("normalise", &normalise);
  library.impl("lstm_gates", &lstm_gates);
  library.impl("lstm_gates_backward", &lstm_gates_backward);
}

}  // namespace lockstep::trace
