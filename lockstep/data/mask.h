// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::data {

// The pixels of one object: [height, width], 1 inside.
struct Mask {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> inside;

  Mask(int64_t mask_width, int64_t mask_height)
      : width(mask_width), height(mask_height), inside(static_cast<size_t>(mask_width * mask_height)) {}
  int64_t area() const;
  bool operator==(const Mask&) const = default;
};

// A polygon x0, y0, x1, y1, ... joined to the mask: the very pixels that COCO's own tools take for it.
void add_polygon(Mask& mask, std::span<const double> points);

// Runs outside, inside, outside, ... down the columns, as COCO keeps them. User error when they are not as many pixels
// as the mask has.
void add_runs(Mask& mask, std::span<const int64_t> runs);
// The same in COCO's compressed spelling.
std::vector<int64_t> parse_runs(std::string_view compressed);

// What COCO writes as "segmentation": a list of polygons, or {"size": [height, width], "counts": runs}.
// User error for anything else.
Mask mask_of(const base::Json& segmentation, int64_t width, int64_t height);

// A PNG picture of the objects, each by its number from 1 in this order; where several lie over each other the smaller
// one is seen. Up to 255 objects it is grey; with more a pixel's number is red + 256 green.
std::string objects_png(const std::vector<Mask>& masks, int64_t width, int64_t height);

}  // namespace lockstep::data
