// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of the operators that networks are made of (lockstep/kernel), registered when this library is
// opened. lockstep/trace/layers.cpp tells of the same tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <initializer_list>
#include <tuple>

#include "lockstep/forecast/kernel_grid.h"
#include "lockstep/kernel/lstm_grid.h"
#include "lockstep/kernel/pool_grid.h"
#include "plugins/cuda/batch_norm.h"
#include "plugins/cuda/lstm.h"
#include "plugins/cuda/max_pool.h"
#include "plugins/cuda/pixels.h"
#include "plugins/cuda/tokens.h"

namespace {

using namespace lockstep_cuda_internal;
using at::Tensor;
using lockstep::forecast::BatchNormGrid;
using lockstep::forecast::TokenGrid;
using lockstep::kernel::pooled_size;
using Optional = std::optional<Tensor>;

cudaStream_t stream() {
  return c10::cuda::getCurrentCUDAStream();
}

const float* floats(const Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

Number number_of(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK(type == at::kBFloat16 || type == at::kHalf, "these kernels take bf16 and fp16, not ", type);
  return type == at::kBFloat16 ? Number::bf16 : Number::fp16;
}

Tensor scratch(int64_t count, const Tensor& beside) {
  return at::empty({count}, beside.options().dtype(at::kFloat));
}

BatchNormShape shape_of(const Tensor& map) {
  return {map.numel() / map.size(1), map.size(1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_cuda(const Tensor& input, const Optional& added,
                                                           const Tensor& weight, const Tensor& bias,
                                                           const Tensor& running_mean, const Tensor& running_variance,
                                                           double momentum, double epsilon, bool relu) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor more = added ? added->contiguous(at::MemoryFormat::ChannelsLast) : Tensor();
  const BatchNormShape shape = shape_of(input);
  Tensor output = at::empty_like(input), mean = at::empty_like(weight), inverse = at::empty_like(weight);
  const bool keeps_mask = added && relu;
  Tensor mask = at::empty({keeps_mask ? input.numel() / 8 : 0}, input.options().dtype(at::kByte));
  const Tensor sums = scratch(BatchNormGrid(shape.rows, shape.channels).sums(), input);
  batch_norm({.shape = shape,
              .input = input.const_data_ptr(),
              .added = more.defined() ? more.const_data_ptr() : nullptr,
              .weight = floats(weight),
              .bias = floats(bias),
              .running_mean = running_mean.data_ptr<float>(),
              .running_variance = running_variance.data_ptr<float>(),
              .momentum = static_cast<float>(momentum),
              .epsilon = static_cast<float>(epsilon),
              .relu = relu,
              .output = output.mutable_data_ptr(),
              .mean = mean.data_ptr<float>(),
              .inverse = inverse.data_ptr<float>(),
              .mask = keeps_mask ? mask.data_ptr<uint8_t>() : nullptr,
              .sums = sums.data_ptr<float>()},
             number_of(input), stream());
  return {output, mean, inverse, mask};
}

// A part of the channels of a map that lies channels last can be read where it is.
bool has_rows(const Tensor& map) {
  const int64_t row = map.stride(3);
  return map.stride(1) == 1 && row >= map.size(1) && row % 8 == 0 && map.stride(2) == row * map.size(3) &&
         map.stride(0) == map.stride(2) * map.size(2) && map.storage_offset() % 8 == 0;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_cuda(const Tensor& gradient, const Tensor& input,
                                                                    const Tensor& weight, const Tensor& bias,
                                                                    const Tensor& mean, const Tensor& inverse,
                                                                    const Tensor& mask, bool relu) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor pushed = has_rows(gradient) ? gradient : gradient.contiguous(at::MemoryFormat::ChannelsLast);
  const BatchNormShape shape = shape_of(input);
  const bool masked = mask.numel() > 0;
  Tensor of_input = at::empty_like(input), of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  Tensor of_added = masked ? at::empty_like(input) : at::empty({0}, input.options());
  const Tensor sums = scratch(BatchNormGrid(shape.rows, shape.channels).sums(), input);
  batch_norm_backward({.shape = shape,
                       .gradient = pushed.const_data_ptr(),
                       .gradient_stride = has_rows(pushed) ? pushed.stride(3) : shape.channels,
                       .input = input.const_data_ptr(),
                       .weight = floats(weight),
                       .bias = floats(bias),
                       .mean = floats(mean),
                       .inverse = floats(inverse),
                       .relu = relu,
                       .mask = masked ? mask.const_data_ptr<uint8_t>() : nullptr,
                       .of_input = of_input.mutable_data_ptr(),
                       .of_added = masked ? of_added.mutable_data_ptr() : nullptr,
                       .of_weight = of_weight.data_ptr<float>(),
                       .of_bias = of_bias.data_ptr<float>(),
                       .sums = sums.data_ptr<float>()},
                      number_of(input), stream());
  return {of_input, of_weight, of_bias, of_added};
}

PoolShape pool_shape(at::IntArrayRef map, at::IntArrayRef pooled, int64_t size, int64_t stride, int64_t padding) {
  const auto number = [](int64_t value) { return static_cast<int>(value); };
  return {number(map[0]),    number(map[1]), number(map[2]), number(map[3]), number(pooled[2]),
          number(pooled[3]), number(size),   number(stride), number(padding)};
}

std::tuple<Tensor, Tensor> max_pool_cuda(const Tensor& input, int64_t size, int64_t stride_of_windows, int64_t padding,
                                         bool ceil) {
  const c10::cuda::CUDAGuard guard(input.device());
  const auto pooled = [&](int64_t dim) { return pooled_size(input.size(dim), size, stride_of_windows, padding, ceil); };
  const std::vector<int64_t> shape{input.size(0), input.size(1), pooled(2), pooled(3)};
  Tensor output = at::empty(shape, input.options(), at::MemoryFormat::ChannelsLast);
  Tensor places = at::empty(shape, input.options().dtype(at::kByte), at::MemoryFormat::ChannelsLast);
  max_pool(pool_shape(input.sizes(), shape, size, stride_of_windows, padding), number_of(input), input.const_data_ptr(),
           output.mutable_data_ptr(), places.data_ptr<uint8_t>(), stream());
  return {output, places};
}

Tensor max_pool_backward_cuda(const Tensor& gradient, const Tensor& places, at::IntArrayRef shape, int64_t size,
                              int64_t stride_of_windows, int64_t padding) {
  const c10::cuda::CUDAGuard guard(gradient.device());
  const Tensor pushed = gradient.contiguous(at::MemoryFormat::ChannelsLast);
  Tensor of_input = at::empty(shape, gradient.options(), at::MemoryFormat::ChannelsLast);
  max_pool_backward(pool_shape(shape, gradient.sizes(), size, stride_of_windows, padding), number_of(gradient),
                    pushed.const_data_ptr(), places.const_data_ptr<uint8_t>(), of_input.mutable_data_ptr(), stream());
  return of_input;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> add_layer_norm_cuda(const Tensor& input, const Optional& branch,
                                                               const Tensor& weight, const Tensor& bias,
                                                               double epsilon) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor more = branch ? branch->contiguous() : Tensor();
  const int64_t width = input.size(-1), rows = input.numel() / width;
  Tensor sum = branch ? at::empty_like(input) : at::empty({0}, input.options());
  Tensor normalized = at::empty_like(input), mean = scratch(rows, input), inverse = scratch(rows, input);
  add_layer_norm({.rows = rows,
                  .width = width,
                  .input = input.const_data_ptr(),
                  .branch = more.defined() ? more.const_data_ptr() : nullptr,
                  .weight = floats(weight),
                  .bias = floats(bias),
                  .epsilon = static_cast<float>(epsilon),
                  .sum = branch ? sum.mutable_data_ptr() : nullptr,
                  .normalized = normalized.mutable_data_ptr(),
                  .mean = mean.data_ptr<float>(),
                  .inverse = inverse.data_ptr<float>()},
                 number_of(input), stream());
  return {sum, normalized, mean, inverse};
}

std::tuple<Tensor, Tensor, Tensor> add_layer_norm_backward_cuda(const Optional& of_sum, const Tensor& of_normalized,
                                                                const Tensor& sum, const Tensor& weight,
                                                                const Tensor& mean, const Tensor& inverse) {
  const c10::cuda::CUDAGuard guard(sum.device());
  const Tensor passed = of_sum ? of_sum->contiguous() : Tensor(), pushed = of_normalized.contiguous();
  const int64_t width = sum.size(-1), rows = sum.numel() / width;
  Tensor of_input = at::empty_like(sum), of_weight = at::empty_like(weight), of_bias = at::empty_like(weight);
  const Tensor sums = scratch(TokenGrid(rows, width).sums(), sum);
  add_layer_norm_backward({.rows = rows,
                           .width = width,
                           .of_sum = passed.defined() ? passed.const_data_ptr() : nullptr,
                           .of_normalized = pushed.const_data_ptr(),
                           .sum = sum.const_data_ptr(),
                           .weight = floats(weight),
                           .mean = floats(mean),
                           .inverse = floats(inverse),
                           .of_input = of_input.mutable_data_ptr(),
                           .of_weight = of_weight.data_ptr<float>(),
                           .of_bias = of_bias.data_ptr<float>(),
                           .sums = sums.data_ptr<float>()},
                          number_of(sum), stream());
  return {of_input, of_weight, of_bias};
}

// As the kernel reads it: 16 bytes at once.
Tensor head_part(const Tensor& part) {
  const auto even = [](int64_t value) { return value % 8 == 0; };
  const bool fits = part.stride(3) == 1 && even(part.stride(0)) && even(part.stride(1)) && even(part.stride(2)) &&
                    even(part.storage_offset());
  return fits ? part : part.contiguous();
}

Tensor join_qkv_cuda(const Tensor& query, const Tensor& key, const Tensor& value) {
  const c10::cuda::CUDAGuard guard(query.device());
  const Tensor all[] = {head_part(query), head_part(key), head_part(value)};
  HeadPart parts[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    parts[i] = {all[i].const_data_ptr(), all[i].stride(0), all[i].stride(1), all[i].stride(2)};
  }
  const JoinShape shape{query.size(0), query.size(1), query.size(2), query.size(3)};
  Tensor output = at::empty({shape.batch, shape.tokens, 3 * shape.heads * shape.size}, query.options());
  join_qkv(shape, parts, output.mutable_data_ptr(), stream());
  return output;
}

Tensor column_sums_cuda(const Tensor& values) {
  const c10::cuda::CUDAGuard guard(values.device());
  const Tensor from = values.contiguous();
  Tensor out = at::empty({values.size(1)}, values.options());
  const Tensor sums = scratch(BatchNormGrid(values.size(0), values.size(1)).sums(), values);
  column_sums(values.size(0), values.size(1), number_of(values), from.const_data_ptr(), sums.data_ptr<float>(),
              out.mutable_data_ptr(), stream());
  return out;
}

Tensor gelu_cuda(const Tensor& values) {
  const c10::cuda::CUDAGuard guard(values.device());
  const Tensor from = values.contiguous();
  Tensor out = at::empty_like(from);
  gelu(values.numel(), number_of(values), from.const_data_ptr(), out.mutable_data_ptr(), stream());
  return out;
}

std::tuple<Tensor, Tensor> gelu_backward_cuda(const Tensor& gradient, const Tensor& input) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor pushed = gradient.contiguous(), from = input.contiguous();
  const int64_t rows = input.size(0), width = input.size(1);
  Tensor of_input = at::empty_like(from), of_bias = at::empty({width}, input.options());
  const Tensor sums = scratch(BatchNormGrid(rows, width).sums(), input);
  gelu_backward({.rows = rows,
                 .width = width,
                 .gradient = pushed.const_data_ptr(),
                 .input = from.const_data_ptr(),
                 .of_input = of_input.mutable_data_ptr(),
                 .of_bias = of_bias.mutable_data_ptr(),
                 .sums = sums.data_ptr<float>()},
                number_of(input), stream());
  return {of_input, of_bias};
}

Tensor normalise_cuda(const Tensor& pixels, at::ArrayRef<double> factor, at::ArrayRef<double> offset) {
  const c10::cuda::CUDAGuard guard(pixels.device());
  PixelNumbers numbers{{}, {}, static_cast<int>(pixels.size(-1))};
  TORCH_CHECK(
      factor.size() == offset.size() && factor.size() == static_cast<size_t>(pixels.size(-1)) && factor.size() <= 4,
      "a factor and an offset for each of at most 4 channels");
  for (size_t i = 0; i < factor.size(); ++i) {
    numbers.factor[i] = static_cast<float>(factor[i]);
    numbers.offset[i] = static_cast<float>(offset[i]);
  }
  const Tensor from = pixels.contiguous();
  Tensor out = at::empty(pixels.sizes(), pixels.options().dtype(at::kFloat));
  normalise(numbers, pixels.numel(), from.const_data_ptr<uint8_t>(), out.data_ptr<float>(), stream());
  return out;
}

Number lstm_number_of(const Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat ? Number::fp32 : number_of(tensor);
}

// Channels last without gaps, of this type; copied where it is not.
Tensor pixels_of(const Tensor& map, at::ScalarType type) {
  return map.to(type).contiguous(at::MemoryFormat::ChannelsLast);
}

// What the kernels write, or read without such a copy.
void check_pixels(std::initializer_list<Tensor> maps, at::ScalarType type) {
  for (const Tensor& map : maps) {
    TORCH_CHECK(map.is_contiguous(at::MemoryFormat::ChannelsLast) && map.scalar_type() == type,
                "the gates of an LSTM take maps of ", type, ", channels last");
  }
}

void lstm_gates_cuda(const Optional& input_sums, const Optional& state_sums, const Optional& bias, const Tensor& cells,
                     const Tensor& peepholes, Tensor hidden, Tensor cells_out, Optional gates) {
  const c10::cuda::CUDAGuard guard(hidden.device());
  const auto type = hidden.scalar_type();
  check_pixels({hidden, gates.value_or(hidden)}, type);
  check_pixels({cells_out}, at::kFloat);
  const auto plain = [&](const Optional& map) { return map ? pixels_of(*map, type) : Tensor(); };
  const Tensor in = plain(input_sums), state = plain(state_sums), before = pixels_of(cells, at::kFloat),
               holes = peepholes.to(type).contiguous(), offset = bias ? bias->to(type).contiguous() : Tensor();
  const auto from = [](const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; };
  lstm_gates({.pixels = cells.numel() / cells.size(1),
              .channels = static_cast<int>(cells.size(1)),
              .input_sums = from(in),
              .state_sums = from(state),
              .bias = from(offset),
              .cells = floats(before),
              .peepholes = from(holes),
              .hidden = hidden.mutable_data_ptr(),
              .cells_out = cells_out.data_ptr<float>(),
              .gates = gates ? gates->mutable_data_ptr() : nullptr},
             lstm_number_of(hidden), stream());
}

void lstm_gates_backward_cuda(const Tensor& of_hidden, const Tensor& gates, const Tensor& before, const Tensor& after,
                              const Tensor& peepholes, Tensor of_sums, Tensor of_cells, Tensor of_peepholes) {
  const c10::cuda::CUDAGuard guard(gates.device());
  const auto type = gates.scalar_type();
  check_pixels({gates, of_sums}, type);
  check_pixels({before, after, of_cells}, at::kFloat);
  const int64_t pixels = before.numel() / before.size(1);
  const Tensor pushed = pixels_of(of_hidden, type), holes = peepholes.to(type).contiguous();
  const Tensor sums = scratch(lockstep::kernel::LstmGrid(pixels, before.size(1)).sums(), gates);
  lstm_gates_backward({.pixels = pixels,
                       .channels = static_cast<int>(before.size(1)),
                       .of_hidden = pushed.const_data_ptr(),
                       .gates = gates.const_data_ptr(),
                       .before = floats(before),
                       .after = floats(after),
                       .peepholes = holes.const_data_ptr(),
                       .of_sums = of_sums.mutable_data_ptr(),
                       .of_cells = of_cells.data_ptr<float>(),
                       .of_peepholes = of_peepholes.data_ptr<float>(),
                       .scratch = sums.data_ptr<float>()},
                      lstm_number_of(gates), stream());
}

}  // namespace

TORCH_LIBRARY_IMPL(lockstep, CUDA, library) {
  library.impl("fused_batch_norm", &batch_norm_cuda);
  library.impl("fused_batch_norm_backward", &batch_norm_backward_cuda);
  library.impl("max_pool", &max_pool_cuda);
  library.impl("max_pool_backward", &max_pool_backward_cuda);
  library.impl("add_layer_norm", &add_layer_norm_cuda);
  library.impl("add_layer_norm_backward", &add_layer_norm_backward_cuda);
  library.impl("join_qkv", &join_qkv_cuda);
  library.impl("column_sums", &column_sums_cuda);
  library.impl("gelu", &gelu_cuda);
  library.impl("gelu_backward", &gelu_backward_cuda);
  library.impl("normalise", &normalise_cuda);
  library.impl("lstm_gates", &lstm_gates_cuda);
  library.impl("lstm_gates_backward", &lstm_gates_backward_cuda);
}
