// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/bilinear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace lockstep::model {
namespace {

struct AxisPair {
  at::Tensor low, high;  // the two pixels around, as whole floats
  at::Tensor share;      // of the higher one; carries the gradient
};

AxisPair around(const at::Tensor& coordinates, int64_t size) {
  const at::Tensor number = at::where(coordinates.eq(coordinates), coordinates, at::zeros_like(coordinates));
  const at::Tensor inside = number.clamp(0, size - 1);
  const at::Tensor low = inside.detach().floor();
  return {low, (low + 1).clamp(0, size - 1), inside - low};
}

}  // namespace

at::Tensor sample_bilinear(const at::Tensor& map, const at::Tensor& points) {
  const int64_t batch = map.size(0), channels = map.size(1), height = map.size(2), width = map.size(3);
  const AxisPair x = around(points.select(2, 0), width);  // [batch, points]
  const AxisPair y = around(points.select(2, 1), height);
  const auto pixel = [&](const at::Tensor& top, const at::Tensor& left) { return top * width + left; };
  const at::Tensor corner =
      at::stack({pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low), pixel(y.high, x.high)}, 2);
  const at::Tensor image = at::arange(batch, corner.options().dtype(at::kLong)).mul(height * width).view({batch, 1, 1});
  const at::Tensor rows = corner.to(at::kLong) + image;  // [batch, points, 4]
  const at::Tensor left = 1 - x.share, top = 1 - y.share;
  const at::Tensor weights =
      at::stack({top * left, top * x.share, y.share * left, y.share * x.share}, 2);  // [batch, points, 4]
  const at::Tensor pixels = map.permute({0, 2, 3, 1}).reshape({batch * height * width, channels});
  // An embedding, not index_select: its gradient is added up in the order of the rows, that of the other in any.
  const at::Tensor corners = at::embedding(pixels, rows);  // [batch, points, 4, channels]
  return (corners * weights.unsqueeze(3).to(corners.scalar_type())).sum(2);
}

}  // namespace lockstep::model
