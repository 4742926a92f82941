// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/image/augment.h"

namespace lockstep::image {

// What a view (a crop, its resize, a mirror) does to that which is drawn on an image. Coordinates are in pixels and
// continuous: the first pixel reaches from 0 to 1.
struct Corner {
  double x = 0;
  double y = 0;

  bool operator==(const Corner&) const = default;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double area() const { return (right - left) * (bottom - top); }
  bool operator==(const Box&) const = default;
};

using Polygon = std::vector<Corner>;

struct Bitmap {  // a byte a pixel: 0 or 1 of an instance, or labels
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels = {};

  bool operator==(const Bitmap&) const = default;
};

Corner show_corner(const View& view, Corner point);

// Clipped to what the view shows; an area of 0 when nothing of it is seen.
Box show_box(const View& view, const Box& box);

struct ShownBox {
  size_t index = 0;    // among those given
  Box box;             // clipped, in pixels of the result
  double visible = 1;  // share of its area that is seen

  bool operator==(const ShownBox&) const = default;
};

// Those of which at least `min_visible` is seen, and something at all.
std::vector<ShownBox> show_boxes(const View& view, std::span<const Box> boxes, double min_visible);

// Clipped (Sutherland and Hodgman 1974); empty when nothing of it is seen. A polygon that the edge cuts into pieces
// stays one, joined along the edge.
Polygon show_polygon(const View& view, const Polygon& polygon);

// Nearest neighbour, as torchvision resizes masks. REQUIRES: the size of the image that the view is of.
Bitmap show_mask(const View& view, const Bitmap& mask);

struct DetectionView {
  int64_t width = 0;  // of the result
  int64_t height = 0;
  double min_scale = 0.3;  // of the area
  double min_ratio = 0.5, max_ratio = 2;
  double min_visible = 0.3;  // of a box, to count as seen
  bool flip = true;
  double brightness = 0, contrast = 0, saturation = 0;  // factors between 1 - x and 1 + x
  double hue = 0;                                       // turned by at most this, in whole circles
};

// A random crop, resized to the result, mirrored half of the time, with changed colours; everything that is random
// comes from `random`, so it is a function of (seed, epoch, sample). Where there are boxes, one at least stays visible:
// when ten crops fail in this the whole image is shown.
View detection_view(int64_t width, int64_t height, std::span<const Box> boxes, const DetectionView& how,
                    base::Random random);

}  // namespace lockstep::image
