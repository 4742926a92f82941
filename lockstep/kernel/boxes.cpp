// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/boxes.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

constexpr int64_t kGrain = 4096;  // boxes that are worth a thread

int64_t num_anchors(at::IntArrayRef grids) {
  int64_t count = 0;
  for (size_t i = 0; i + 1 < grids.size(); i += 2) count += grids[i] * grids[i + 1] * kAnchorsPerCell;
  return count;
}

at::Tensor anchors_meta(const at::Tensor& like, at::IntArrayRef grids, int64_t /*height*/, int64_t /*width*/) {
  return at::empty({num_anchors(grids), 4}, like.options().dtype(at::kFloat));
}

at::Tensor anchors_cpu(const at::Tensor& like, at::IntArrayRef grids, int64_t height, int64_t width) {
  at::Tensor all = anchors_meta(like, grids, height, width);
  auto* out = reinterpret_cast<Box*>(all.data_ptr<float>());
  float size = 32;
  for (size_t level = 0; level * 2 < grids.size(); ++level, size *= 2) {
    const int64_t rows = grids[2 * level], columns = grids[2 * level + 1];
    std::array<Box, kAnchorsPerCell> around{};
    for (size_t i = 0; i < around.size(); ++i) {
      const float tall = std::sqrt(std::array{0.5F, 1.0F, 2.0F}[i]);
      const float x = std::nearbyint(size / tall / 2), y = std::nearbyint(size * tall / 2);
      around[i] = {-x, -y, x, y};
    }
    const int64_t pixels_down = height / rows, pixels_across = width / columns;  // whole ones, as torchvision has them
    const auto down = static_cast<float>(pixels_down), across = static_cast<float>(pixels_across);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const float x = static_cast<float>(column) * across, y = static_cast<float>(row) * down;
        for (const Box& one : around) *out++ = {one.x1 + x, one.y1 + y, one.x2 + x, one.y2 + y};
      }
    }
  }
  return all;
}

CoderWeights coder_weights(double position, double size) {
  return {static_cast<float>(position), static_cast<float>(position), static_cast<float>(size),
          static_cast<float>(size)};
}

at::Tensor decode_meta(const at::Tensor& /*boxes*/, const at::Tensor& deltas, const at::Tensor& /*shown*/,
                       double /*position*/, double /*size*/) {
  return at::empty(deltas.sizes(), deltas.options());
}

at::Tensor decode_cpu(const at::Tensor& boxes, const at::Tensor& deltas, const at::Tensor& shown, double position,
                      double size) {
  const at::Tensor from = boxes.contiguous(), moves = deltas.contiguous(), limits = shown.contiguous();
  at::Tensor out = decode_meta(boxes, deltas, shown, position, size);
  const int64_t each = deltas.size(2), per_image = deltas.size(1);
  const CoderWeights weights = coder_weights(position, size);
  const auto* from_data = reinterpret_cast<const Box*>(from.const_data_ptr<float>());
  const auto* moves_data = moves.const_data_ptr<float>();
  const auto* shown_data = limits.const_data_ptr<float>();
  auto* out_data = reinterpret_cast<Box*>(out.data_ptr<float>());
  at::parallel_for(0, deltas.size(0) * per_image, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* most = shown_data + 2 * (i / per_image);
      for (int64_t k = i * each; k < (i + 1) * each; ++k) {
        out_data[k] = decode(from_data[i], moves_data + 4 * k, weights, most[0], most[1]);
      }
    }
  });
  return out;
}

at::Tensor encode_meta(const at::Tensor& boxes, const at::Tensor& /*wanted*/, double /*position*/, double /*size*/) {
  return at::empty(boxes.sizes(), boxes.options());
}

at::Tensor encode_cpu(const at::Tensor& boxes, const at::Tensor& wanted, double position, double size) {
  const at::Tensor from = boxes.contiguous(), to = wanted.contiguous();
  at::Tensor out = encode_meta(boxes, wanted, position, size);
  const CoderWeights weights = coder_weights(position, size);
  const auto* from_data = reinterpret_cast<const Box*>(from.const_data_ptr<float>());
  const auto* to_data = reinterpret_cast<const Box*>(to.const_data_ptr<float>());
  auto* out_data = out.data_ptr<float>();
  at::parallel_for(0, boxes.numel() / 4, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) encode(from_data[i], to_data[i], weights, out_data + 4 * i);
  });
  return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lockstep, library) {
  library.def("anchors(Tensor like, int[] grids, int height, int width) -> Tensor");
  library.def("decode_boxes(Tensor boxes, Tensor deltas, Tensor shown, float position, float size) -> Tensor");
  library.def("encode_boxes(Tensor boxes, Tensor wanted, float position, float size) -> Tensor");
}

TORCH_LIBRARY_IMPL(lockstep, CPU, library) {
  library.impl("anchors", &anchors_cpu);
  library.impl("decode_boxes", &decode_cpu);
  library.impl("encode_boxes", &encode_cpu);
}

TORCH_LIBRARY_IMPL(lockstep, Meta, library) {
  library.impl("anchors", &anchors_meta);
  library.impl("decode_boxes", &decode_meta);
  library.impl("encode_boxes", &encode_meta);
}

at::Tensor anchors(const at::Tensor& like, const std::vector<Grid>& grids, int64_t height, int64_t width) {
  using Signature = at::Tensor(const at::Tensor&, at::IntArrayRef, int64_t, int64_t);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::anchors", "").typed<Signature>();
  std::vector<int64_t> sizes;
  for (const Grid& grid : grids) sizes.insert(sizes.end(), {grid.height, grid.width});
  const c10::AutoGradMode no_gradients(false);
  return operation.call(like, sizes, height, width);
}

at::Tensor decode_boxes(const at::Tensor& boxes, const at::Tensor& deltas, const at::Tensor& shown,
                        const BoxCoder& coder) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, double, double);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::decode_boxes", "").typed<Signature>();
  base::ensure(boxes.dim() == 3 && deltas.dim() == 4 && boxes.size(0) == deltas.size(0) &&
                   boxes.size(1) == deltas.size(1) && shown.size(0) == boxes.size(0),
               "boxes and their deltas are as many");
  const c10::AutoGradMode no_gradients(false);
  return operation.call(boxes, deltas, shown, coder.position, coder.size);
}

at::Tensor encode_boxes(const at::Tensor& boxes, const at::Tensor& wanted, const BoxCoder& coder) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, double, double);
  static const auto operation =
      c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::encode_boxes", "").typed<Signature>();
  base::ensure(boxes.sizes() == wanted.sizes(), "every box has one that it shall become");
  const c10::AutoGradMode no_gradients(false);
  return operation.call(boxes, wanted, coder.position, coder.size);
}

}  // namespace lockstep::kernel
