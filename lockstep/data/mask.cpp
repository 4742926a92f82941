// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/mask.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/data/decode.h"

namespace lockstep::data {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// COCO's tools walk along a polygon's edges on a grid that is this much finer than the pixels.
constexpr int kFine = 5;
constexpr double kFarthest = 1 << 24;  // pixels: the fine grid stays within 32 bits

[[noreturn]] void fail(const std::string& why) {
  throw Error(Blame::user, text("segmentation: ", why),
              "polygons [[x, y, ...]], or {\"size\": [h, w], \"counts\": ...}");
}

struct FinePoint {
  int64_t x;
  int64_t y;
};

FinePoint fine_point(double x, double y) {
  if (!(std::abs(x) < kFarthest && std::abs(y) < kFarthest)) fail("a corner of a polygon is out of range");
  return {static_cast<int64_t>(kFine * x + 0.5), static_cast<int64_t>(kFine * y + 0.5)};
}

// Every fine point of an edge, one a column (flat edges) or one a row (steep ones), from `from` to `to`.
void walk(FinePoint from, FinePoint to, std::vector<FinePoint>& path) {
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
      return static_cast<int64_t>(static_cast<double>(start) + slope * static_cast<double>(t) + 0.5);
    };
    path.push_back(flat ? FinePoint{from.x + t, across(from.y)} : FinePoint{across(from.x), from.y + t});
  }
}

double pixel_of(int64_t fine) {
  return (static_cast<double>(fine) + 0.5) / kFine - 0.5;
}

// Where the path crosses the middle of a pixel column inside and outside change places, in the order of the columns.
std::vector<int64_t> crossings(const std::vector<FinePoint>& path, const Mask& mask) {
  std::vector<int64_t> found;
  for (size_t i = 1; i < path.size(); ++i) {
    const FinePoint &before = path[i - 1], &now = path[i];
    if (now.x == before.x) continue;
    const double x = pixel_of(now.x < before.x ? now.x : now.x - 1);
    if (std::floor(x) != x || x < 0 || x > static_cast<double>(mask.width - 1)) continue;
    const double y = std::clamp(pixel_of(std::min(now.y, before.y)), 0.0, static_cast<double>(mask.height));
    found.push_back(static_cast<int64_t>(x) * mask.height + static_cast<int64_t>(std::ceil(y)));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The pixels [from, to) counted down the columns.
void fill(Mask& mask, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i)
    mask.inside[static_cast<size_t>(i % mask.height * mask.width + i / mask.height)] = 1;
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

std::vector<int64_t> runs_of(const Json& counts) {
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
  std::vector<FinePoint> corners, path;
  for (size_t i = 0; i + 1 < points.size(); i += 2) corners.push_back(fine_point(points[i], points[i + 1]));
  for (size_t i = 0; i < corners.size(); ++i) walk(corners[i], corners[(i + 1) % corners.size()], path);
  std::vector<int64_t> places = crossings(path, mask);
  places.push_back(mask.width * mask.height);
  for (size_t i = 0; i + 1 < places.size(); i += 2) fill(mask, places[i], places[i + 1]);
}

void add_runs(Mask& mask, std::span<const int64_t> runs) {
  const int64_t pixels = mask.width * mask.height;
  int64_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] < 0 || runs[i] > pixels - at) fail("the runs are longer than the picture");
    if (i % 2 == 1) fill(mask, at, at + runs[i]);
    at += runs[i];
  }
  if (at != pixels) fail("the runs are shorter than the picture");
}

// Each number in groups of five bits, lowest first, in printable letters from '0' on; the sixth bit says that more
// follow, the last group's fifth bit is the sign. From the fourth on a number is the difference to the one before last.
std::vector<int64_t> parse_runs(std::string_view compressed) {
  std::vector<int64_t> runs;
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

Mask mask_of(const Json& segmentation, int64_t width, int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPixels / height) fail("a picture of no or too many pixels");
  Mask mask(width, height);
  if (segmentation.is_array()) {
    for (const auto& polygon : segmentation.items()) add_polygon(mask, numbers_of(polygon));
    return mask;
  }
  if (!segmentation.is_object() || !segmentation.contains("counts") || !segmentation.contains("size"))
    fail("unknown form");
  const Json& size = segmentation.at("size");
  if (!size.is_array() || size.size() != 2 || size.items()[0].as_int() != height || size.items()[1].as_int() != width) {
    fail("its size is not that of the picture");
  }
  add_runs(mask, runs_of(segmentation.at("counts")));
  return mask;
}

std::string objects_png(const std::vector<Mask>& masks, int64_t width, int64_t height) {
  std::vector<size_t> order(masks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<int64_t> areas;
  for (const auto& mask : masks) areas.push_back(mask.area());
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return areas[a] > areas[b]; });
  const bool grey = masks.size() < 256;
  Image picture(width, height);
  for (const size_t number : order) {
    const auto low = static_cast<uint8_t>((number + 1) & 255), high = static_cast<uint8_t>((number + 1) >> 8);
    for (size_t i = 0; i < masks[number].inside.size(); ++i) {
      if (masks[number].inside[i] == 0) continue;
      picture.pixels[3 * i] = low;
      picture.pixels[3 * i + 1] = grey ? low : high;
      picture.pixels[3 * i + 2] = grey ? low : 0;
    }
  }
  return encode_png(picture);
}

}  // namespace lockstep::data
