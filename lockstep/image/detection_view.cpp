// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/detection_view.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

constexpr double kHair = 1e-9;  // a mirror rounds another way

double along(const Axis& axis, double value) {
  const double shown = (value - axis.begin) / axis.scale;
  return axis.reversed ? static_cast<double>(axis.num_outputs) - shown : shown;
}

double seen_along(const Axis& axis, double value) {
  return std::clamp(along(axis, value), 0.0, static_cast<double>(axis.num_outputs));
}

// One edge of the result: `inside` says which side counts, `cross` gives the point on the edge between two.
template <class Inside, class Cross>
Polygon cut(const Polygon& polygon, const Inside& inside, const Cross& cross) {
  Polygon kept;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Corner& from = polygon[i];
    const Corner& to = polygon[(i + 1) % polygon.size()];
    if (inside(from)) kept.push_back(from);
    if (inside(from) != inside(to)) kept.push_back(cross(from, to));
  }
  return kept;
}

Polygon cut_at_x(const Polygon& polygon, double edge, double side) {
  return cut(
      polygon, [=](const Corner& p) { return side * (p.x - edge) >= 0; },
      [=](const Corner& a, const Corner& b) {
        return Corner{edge, a.y + (b.y - a.y) * (edge - a.x) / (b.x - a.x)};
      });
}

Polygon cut_at_y(const Polygon& polygon, double edge, double side) {
  return cut(
      polygon, [=](const Corner& p) { return side * (p.y - edge) >= 0; },
      [=](const Corner& a, const Corner& b) {
        return Corner{a.x + (b.x - a.x) * (edge - a.y) / (b.y - a.y), edge};
      });
}

// The source pixel of each output: single precision, as torch's nearest neighbour computes it.
std::vector<int64_t> nearest(const Axis& axis) {
  std::vector<int64_t> sources;
  const auto scale = static_cast<float>(axis.scale);
  for (int64_t i = 0; i < axis.num_outputs; ++i) {
    const int64_t position = axis.reversed ? axis.num_outputs - 1 - i : i;
    const auto source =
        static_cast<int64_t>(axis.begin) + static_cast<int64_t>(std::floor(static_cast<float>(position) * scale));
    sources.push_back(std::clamp(source, axis.low, axis.high - 1));
  }
  return sources;
}

Axis shown_axis(int64_t begin, int64_t length, int64_t num_outputs) {
  return {.num_outputs = num_outputs,
          .begin = static_cast<double>(begin),
          .scale = static_cast<double>(length) / static_cast<double>(num_outputs),
          .low = begin,
          .high = begin + length};
}

float jitter(double strength, base::Random& random) {
  const double low = std::max(0.0, 1 - strength);
  return strength > 0 ? static_cast<float>(random.uniform(low, 1 + strength)) : 1.0f;
}

}  // namespace

Corner show_corner(const View& view, Corner point) {
  return {along(view.x, point.x), along(view.y, point.y)};
}

Box show_box(const View& view, const Box& box) {
  Box shown{seen_along(view.x, box.left), seen_along(view.y, box.top), seen_along(view.x, box.right),
            seen_along(view.y, box.bottom)};
  if (view.x.reversed) std::swap(shown.left, shown.right);
  if (view.y.reversed) std::swap(shown.top, shown.bottom);
  return shown;
}

std::vector<ShownBox> show_boxes(const View& view, std::span<const Box> boxes, double min_visible) {
  std::vector<ShownBox> shown;
  for (size_t i = 0; i < boxes.size(); ++i) {
    ShownBox each{i, show_box(view, boxes[i]), 0};
    const double whole = boxes[i].area() / (view.x.scale * view.y.scale);
    if (whole > 0) each.visible = each.box.area() / whole;
    if (each.box.area() > 0 && each.visible >= min_visible - kHair) shown.push_back(each);
  }
  return shown;
}

Polygon show_polygon(const View& view, const Polygon& polygon) {
  Polygon shown;
  for (const Corner& point : polygon) shown.push_back(show_corner(view, point));
  shown = cut_at_x(shown, 0, 1);
  shown = cut_at_x(shown, static_cast<double>(view.x.num_outputs), -1);
  shown = cut_at_y(shown, 0, 1);
  shown = cut_at_y(shown, static_cast<double>(view.y.num_outputs), -1);
  return shown.size() < 3 ? Polygon{} : shown;
}

Bitmap show_mask(const View& view, const Bitmap& mask) {
  base::ensure(view.x.high <= mask.width && view.y.high <= mask.height, "a mask as large as its image");
  const auto columns = nearest(view.x), rows = nearest(view.y);
  Bitmap shown{view.x.num_outputs, view.y.num_outputs, {}};
  shown.pixels.reserve(static_cast<size_t>(shown.width * shown.height));
  for (const int64_t row : rows) {
    const uint8_t* source = mask.pixels.data() + row * mask.width;
    for (const int64_t column : columns) shown.pixels.push_back(source[column]);
  }
  return shown;
}

View detection_view(int64_t width, int64_t height, std::span<const Box> boxes, const DetectionView& how,
                    base::Random random) {
  View view{.x = shown_axis(0, width, how.width), .y = shown_axis(0, height, how.height)};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(width * height) * random.uniform(how.min_scale, 1);
    const double ratio = std::exp(random.uniform(std::log(how.min_ratio), std::log(how.max_ratio)));
    const auto w = static_cast<int64_t>(std::llround(std::sqrt(area * ratio)));
    const auto h = static_cast<int64_t>(std::llround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t x = random.below(width - w + 1);
    const View crop{.x = shown_axis(x, w, how.width), .y = shown_axis(random.below(height - h + 1), h, how.height)};
    if (!boxes.empty() && show_boxes(crop, boxes, how.min_visible).empty()) continue;
    view = crop;
    break;
  }
  view.x.reversed = how.flip && random.chance(0.5);
  view.colour.brightness = jitter(how.brightness, random);
  view.colour.contrast = jitter(how.contrast, random);
  view.colour.saturation = jitter(how.saturation, random);
  if (how.hue > 0) view.colour.hue = static_cast<float>(random.uniform(-how.hue, how.hue));
  return view;
}

}  // namespace lockstep::image
