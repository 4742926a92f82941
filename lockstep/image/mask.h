// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/image/turn.h"

namespace lockstep::image {

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

// A polygon x0, y0, x1, y1, ... joined to the mask: the very pixels that COCO's own tools take for it. User error for a
// corner that lies absurdly far outside, or an outline of absurd length.
void add_polygon(Mask& mask, std::span<const double> points);

// Runs outside, inside, outside, ... down the columns, as COCO keeps them. User error when they are not as many pixels
// as the mask has.
void add_runs(Mask& mask, std::span<const int64_t> runs);
// The same in COCO's compressed spelling.
std::vector<int64_t> parse_runs(std::string_view compressed);

// The other way round: the runs of a mask, and their compressed spelling.
std::vector<int64_t> encode_runs(const Mask& mask);
std::string compress_runs(std::span<const int64_t> runs);

// The mask of a stored image as it lies on the one that is seen.
Mask turn_mask(const Mask& stored, const Turn& turn);

// Where inside and outside change places, counted down the columns, in ascending order: one part of an outline without
// the memory of its pixels.
using Switches = std::vector<int64_t>;
// What COCO writes as "segmentation", part by part: a pixel is inside where it is so in any of them. User error as
// rasterize_mask.
std::vector<Switches> outline_switches(const base::Json& segmentation, int64_t width, int64_t height);

// What COCO writes as "segmentation": a list of polygons, or {"size": [height, width], "counts": runs}.
// User error for anything else.
Mask rasterize_mask(const base::Json& segmentation, int64_t width, int64_t height);

// An image of objects, each by its number from 1 in the order in which they are added; where several lie over each
// other the smaller one is seen (of equals the later). Two bytes a pixel however many there are. User error for an
// image of too many pixels or objects.
class ObjectsImage {
 public:
  static constexpr size_t kMostObjects = 65535;

  ObjectsImage(int64_t width, int64_t height);
  void add(const Mask* mask);  // null: the object has no outline, and a number all the same
  // Up to 255 objects it is grey; with more a pixel's number is red + 256 green. Turned by an EXIF orientation.
  std::string png(int orientation = 1) const;

 private:
  int64_t width_;
  int64_t height_;
  std::vector<uint16_t> seen_;  // by pixel: the object's number
  std::vector<int64_t> areas_;  // by object
};

}  // namespace lockstep::image
