// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/mask.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// COCO's tools walk along a polygon's edges on a grid that is this much finer than the pixels.
constexpr int kFine = 5;
// Corners beyond the image are common, corners this many of its longer sides away are an error in the list; and the
// walk along them all is work: no outline is as long as this many fine points.
constexpr int64_t kFarthestSides = 8;
constexpr int64_t kLongestOutline = int64_t{1} << 24;

[[noreturn]] void fail(const std::string& why) {
  throw Error(Blame::user, text("segmentation: ", why),
              "polygons [[x, y, ...]], or {\"size\": [h, w], \"counts\": ...}");
}

struct FinePoint {
  int64_t x;
  int64_t y;
};

// Towards zero for negative numbers, as COCO's tools do: lround would give other pixels.
int64_t coco_round(double value) {
  return static_cast<int64_t>(std::trunc(value + 0.5));
}

struct Extent {
  int64_t width;
  int64_t height;
};

FinePoint fine_point(double x, double y, const Extent& image) {
  const auto farthest = static_cast<double>(kFarthestSides * std::max(image.width, image.height));
  if (!(std::abs(x) <= farthest && std::abs(y) <= farthest)) {
    fail(text("a corner of a polygon (", x, ", ", y, ") lies far outside of the image of ", image.width, " x ",
              image.height));
  }
  return {coco_round(kFine * x), coco_round(kFine * y)};
}

int64_t length_of(FinePoint from, FinePoint to) {
  return std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
}

// Every fine point of an edge, one a column (flat edges) or one a row (steep ones), from `from` to `to`.
template <class Visit>
void walk(FinePoint from, FinePoint to, const Visit& visit) {
  const int64_t width = std::abs(to.x - from.x), height = std::abs(to.y - from.y);
  const bool flat = width >= height;
  const bool backwards = flat ? from.x > to.x : from.y > to.y;
  if (backwards) std::swap(from, to);
  const int64_t length = std::max(width, height);
  const double slope = length == 0 ? 0
                       : flat      ? static_cast<double>(to.y - from.y) / static_cast<double>(width)
                                   : static_cast<double>(to.x - from.x) / static_cast<double>(height);
  for (int64_t i = 0; i <= length; ++i) {
    const int64_t t = backwards ? length - i : i;
    const auto across = [&](int64_t start) {  // summed in this order: a tie must fall as it does for COCO's tools
      return coco_round(static_cast<double>(start) + slope * static_cast<double>(t));
    };
    visit(flat ? FinePoint{from.x + t, across(from.y)} : FinePoint{across(from.x), from.y + t});
  }
}

double pixel_of(int64_t fine) {
  return (static_cast<double>(fine) + 0.5) / kFine - 0.5;
}

// Where the way around the corners crosses the middle of a pixel column inside and outside change places, in the order
// of the columns. Only the crossings are kept, not the way.
Switches crossings(std::span<const double> points, const Extent& image) {
  std::vector<FinePoint> corners;
  for (size_t i = 0; i + 1 < points.size(); i += 2) corners.push_back(fine_point(points[i], points[i + 1], image));
  Switches found;
  std::optional<FinePoint> before;
  const auto visit = [&](const FinePoint& now) {
    const FinePoint last = before.value_or(now);
    before = now;
    if (now.x == last.x) return;
    const double x = pixel_of(now.x < last.x ? now.x : now.x - 1);
    if (std::floor(x) != x || x < 0 || x > static_cast<double>(image.width - 1)) return;
    const double y = std::clamp(pixel_of(std::min(now.y, last.y)), 0.0, static_cast<double>(image.height));
    found.push_back(static_cast<int64_t>(x) * image.height + static_cast<int64_t>(std::ceil(y)));
  };
  int64_t length = 0;
  for (size_t i = 0; i < corners.size(); ++i) {
    const FinePoint &from = corners[i], &to = corners[(i + 1) % corners.size()];
    length += length_of(from, to);
    if (length > kLongestOutline) fail(text("a polygon of ", corners.size(), " corners has an outline without end"));
    walk(from, to, visit);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Of runs outside, inside, ...; they must be as many pixels as the image has.
Switches switches_of(std::span<const int64_t> runs, const Extent& image) {
  const int64_t pixels = image.width * image.height;
  Switches found;
  int64_t at = 0;
  for (const int64_t run : runs) {
    if (run < 0 || run > pixels - at) fail("the runs are longer than the image");
    at += run;
    found.push_back(at);
  }
  if (at != pixels) fail("the runs are shorter than the image");
  return found;
}

void fill(Mask& mask, const Switches& switches) {
  const int64_t pixels = mask.width * mask.height;
  for (size_t at = 0; at < switches.size(); at += 2) {
    const int64_t end = at + 1 < switches.size() ? switches[at + 1] : pixels;
    for (int64_t i = switches[at]; i < end; ++i)
      mask.inside[static_cast<size_t>(i % mask.height * mask.width + i / mask.height)] = 1;
  }
}

void check_size(int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPixels / height) fail("an image of no or too many pixels");
}

std::vector<double> numbers_of(const Json& list) {
  if (!list.is_array()) fail("a polygon is a list of numbers");
  std::vector<double> numbers;
  for (const auto& item : list.items()) {
    if (!item.is_number()) fail("a polygon is a list of numbers");
    numbers.push_back(item.as_double());
  }
  if (numbers.size() < 6 || numbers.size() % 2 != 0) fail("a polygon has three corners or more, each x and y");
  return numbers;
}

std::vector<int64_t> listed_runs(const Json& counts) {
  if (counts.is_string()) return parse_runs(counts.as_string());
  if (!counts.is_array()) fail("counts is a list or a string");
  std::vector<int64_t> runs;
  for (const auto& item : counts.items()) runs.push_back(item.as_int());
  return runs;
}

}  // namespace

int64_t Mask::area() const {
  return std::accumulate(inside.begin(), inside.end(), int64_t{0});
}

void add_polygon(Mask& mask, std::span<const double> points) {
  fill(mask, crossings(points, {mask.width, mask.height}));
}

void add_runs(Mask& mask, std::span<const int64_t> runs) {
  fill(mask, switches_of(runs, {mask.width, mask.height}));
}

// Each number in groups of five bits, lowest first, in printable letters from '0' on; the sixth bit says that more
// follow, the last group's fifth bit is the sign. From the fourth on a number is the difference to the one before last.
std::vector<int64_t> parse_runs(std::string_view compressed) {
  std::vector<int64_t> runs;
  runs.reserve(compressed.size());
  for (size_t at = 0; at < compressed.size();) {
    int64_t value = 0;
    int shift = 0;
    bool more = true;
    while (more) {
      if (at >= compressed.size() || shift > 30) fail("damaged counts");
      const int64_t group = compressed[at++] - '0';
      if (group < 0 || group > 63) fail("damaged counts");
      value |= (group & 31) << shift;
      shift += 5;
      more = (group & 32) != 0;
      if (!more && (group & 16) != 0) value |= -(int64_t{1} << shift);
    }
    if (runs.size() > 2) value += runs[runs.size() - 2];
    runs.push_back(value);
  }
  return runs;
}

std::vector<int64_t> encode_runs(const Mask& mask) {
  std::vector<int64_t> runs{0};
  bool inside = false;
  for (int64_t x = 0; x < mask.width; ++x) {
    for (int64_t y = 0; y < mask.height; ++y) {
      const bool now = mask.inside[static_cast<size_t>(y * mask.width + x)] != 0;
      if (now != inside) runs.push_back(0);
      inside = now;
      ++runs.back();
    }
  }
  return runs;
}

std::string compress_runs(std::span<const int64_t> runs) {
  std::string letters;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t value = i > 2 ? runs[i] - runs[i - 2] : runs[i];
    bool more = true;
    while (more) {
      int64_t group = value & 31;
      value >>= 5;
      more = (group & 16) != 0 ? value != -1 : value != 0;
      if (more) group |= 32;
      letters += static_cast<char>(group + '0');
    }
  }
  return letters;
}

Mask turn_mask(const Mask& stored, const Turn& turn) {
  Mask seen(turn.swaps ? stored.height : stored.width, turn.swaps ? stored.width : stored.height);
  uint8_t* out = seen.inside.data();
  for (int64_t y = 0; y < seen.height; ++y) {
    for (int64_t x = 0; x < seen.width; ++x) {
      const Turn::Pixel from = turn.stored_at(x, y, stored.width, stored.height);
      *out++ = stored.inside[static_cast<size_t>(from.y * stored.width + from.x)];
    }
  }
  return seen;
}

std::vector<Switches> outline_switches(const Json& segmentation, int64_t width, int64_t height) {
  check_size(width, height);
  if (segmentation.is_array()) {
    std::vector<Switches> parts;
    for (const auto& polygon : segmentation.items()) parts.push_back(crossings(numbers_of(polygon), {width, height}));
    return parts;
  }
  if (!segmentation.is_object() || !segmentation.contains("counts") || !segmentation.contains("size"))
    fail("unknown form");
  const Json& size = segmentation.at("size");
  if (!size.is_array() || size.size() != 2 || size.items()[0].as_int() != height || size.items()[1].as_int() != width) {
    fail(text("its size ", size.dump(-1), " is not that of the image"));
  }
  return {switches_of(listed_runs(segmentation.at("counts")), {width, height})};
}

Mask rasterize_mask(const Json& segmentation, int64_t width, int64_t height) {
  const std::vector<Switches> parts = outline_switches(segmentation, width, height);
  Mask mask(width, height);
  for (const Switches& part : parts) fill(mask, part);
  return mask;
}

ObjectsImage::ObjectsImage(int64_t width, int64_t height) : width_(width), height_(height) {
  check_size(width, height);
  seen_.resize(static_cast<size_t>(width * height));
}

void ObjectsImage::add(const Mask* mask) {
  if (areas_.size() == kMostObjects) fail(text("more than ", kMostObjects, " objects in an image"));
  const int64_t area = mask ? mask->area() : 0;
  areas_.push_back(area);
  if (!mask) return;
  base::ensure(mask->width == width_ && mask->height == height_, "a mask of the image's size");
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (mask->inside[i] == 0) continue;
    const bool is_seen = seen_[i] == 0 || area <= areas_[seen_[i] - size_t{1}];
    if (is_seen) seen_[i] = static_cast<uint16_t>(areas_.size());
  }
}

std::string ObjectsImage::png(int orientation) const {
  const bool grey = areas_.size() < 256;
  Image image(width_, height_);
  for (size_t i = 0; i < seen_.size(); ++i) {
    const auto low = static_cast<uint8_t>(seen_[i] & 255), high = static_cast<uint8_t>(seen_[i] >> 8);
    image.pixels[3 * i] = low;
    image.pixels[3 * i + 1] = grey ? low : high;
    image.pixels[3 * i + 2] = grey ? low : 0;
  }
  return encode_png(orient(std::move(image), orientation));
}

}  // namespace lockstep::image
