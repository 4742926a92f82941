// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/views.h"

#include <ATen/ops/flip.h>
#include <ATen/ops/upsample_bilinear2d.h>

namespace lockstep::step {
namespace {

constexpr const char* kImage = "image";

at::Tensor corner(const at::Tensor& images, bool bottom, bool right) {
  const int64_t height = images.size(2), width = images.size(3);
  const int64_t rows = (7 * height + 7) / 8, columns = (7 * width + 7) / 8;
  const at::Tensor part = images.narrow(2, bottom ? height - rows : 0, rows)
                              .narrow(3, right ? width - columns : 0, columns);  // [batch, channels, rows, columns]
  return at::upsample_bilinear2d(part, {height, width}, /*align_corners=*/false);
}

}  // namespace

std::vector<model::NamedTensors> views_of(const model::NamedTensors& fields, spec::Views views) {
  const at::Tensor* images = fields.find(kImage);
  if (views == spec::Views::center || !images || images->dim() != 4) return {fields};
  std::vector<at::Tensor> shown{*images};
  if (views == spec::Views::crops) {
    for (const bool bottom : {false, true}) {
      for (const bool right : {false, true}) shown.push_back(corner(*images, bottom, right));
    }
  }
  std::vector<model::NamedTensors> all;
  for (const at::Tensor& view : shown) {
    for (const bool mirrored : {false, true}) {
      model::NamedTensors& one = all.emplace_back(fields);
      one.set(kImage, mirrored ? at::flip(view, {3}).contiguous(view.suggest_memory_format()) : view);
    }
  }
  return all;
}

int64_t num_views(spec::Views views) {
  switch (views) {
    case spec::Views::center:
      return 1;
    case spec::Views::flip:
      return 2;
    case spec::Views::crops:
      return 10;
  }
  return 1;
}

}  // namespace lockstep::step
