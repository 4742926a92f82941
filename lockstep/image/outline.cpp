// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/outline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace lockstep::image {
namespace {

enum Heading : int { kEast, kSouth, kWest, kNorth };
constexpr std::array<std::pair<int64_t, int64_t>, 4> kWays = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};

// By corner of the pixel grid: the headings of the edges that leave it, as bits. Along an edge the mask is on the
// right.
class EdgeGrid {
 public:
  explicit EdgeGrid(const Mask& mask)
      : width_(mask.width + 1), leaving_(static_cast<size_t>((mask.width + 1) * (mask.height + 1))) {
    const auto inside = [&](int64_t x, int64_t y) {
      return x >= 0 && y >= 0 && x < mask.width && y < mask.height &&
             mask.inside[static_cast<size_t>(y * mask.width + x)] != 0;
    };
    for (int64_t y = 0; y < mask.height; ++y) {
      for (int64_t x = 0; x < mask.width; ++x) {
        if (!inside(x, y)) continue;
        if (!inside(x, y - 1)) add(x, y, kEast);
        if (!inside(x + 1, y)) add(x + 1, y, kSouth);
        if (!inside(x, y + 1)) add(x + 1, y + 1, kWest);
        if (!inside(x - 1, y)) add(x, y + 1, kNorth);
      }
    }
  }

  // Takes the edges of one outline away, beginning with one that heads east from (x, y).
  Polygon take_outline(int64_t x, int64_t y) {
    Polygon outline;
    int heading = kEast, before = -1;
    while ((at(x, y) >> heading & 1) != 0) {
      if (heading != before) outline.push_back({static_cast<double>(x), static_cast<double>(y)});
      at(x, y) = static_cast<uint8_t>(at(x, y) & ~(1U << heading));
      x += kWays[static_cast<size_t>(heading)].first;
      y += kWays[static_cast<size_t>(heading)].second;
      before = heading;
      for (const int turn : {1, 0, 3}) {  // to the right first: pixels that meet at a corner are apart
        if ((at(x, y) >> (before + turn) % 4 & 1) == 0) continue;
        heading = (before + turn) % 4;
        break;
      }
    }
    return outline;
  }

  bool leaves_east(int64_t x, int64_t y) { return (at(x, y) >> kEast & 1) != 0; }

 private:
  uint8_t& at(int64_t x, int64_t y) { return leaving_[static_cast<size_t>(y * width_ + x)]; }
  void add(int64_t x, int64_t y, int heading) { at(x, y) = static_cast<uint8_t>(at(x, y) | 1U << heading); }

  int64_t width_;
  std::vector<uint8_t> leaving_;
};

double distance_to_line(const Corner& point, const Corner& from, const Corner& to) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
  if (length == 0) return std::hypot(point.x - from.x, point.y - from.y);
  return std::abs(dy * (point.x - from.x) - dx * (point.y - from.y)) / length;
}

// Marks the corners between `first` and `last` (which may be beyond the end: the outline is closed) that stay.
void keep_corners(const Polygon& outline, size_t first, size_t last, double tolerance, std::vector<uint8_t>& kept) {
  std::vector<std::pair<size_t, size_t>> open{{first, last}};
  const auto corner = [&](size_t i) -> const Corner& { return outline[i % outline.size()]; };
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    size_t farthest = from;
    double most = tolerance;
    for (size_t i = from + 1; i < to; ++i) {
      const double distance = distance_to_line(corner(i), corner(from), corner(to));
      if (distance <= most) continue;
      most = distance;
      farthest = i;
    }
    if (farthest == from) continue;
    kept[farthest % outline.size()] = 1;
    open.emplace_back(from, farthest);
    open.emplace_back(farthest, to);
  }
}

}  // namespace

std::vector<Polygon> trace_outlines(const Mask& mask) {
  EdgeGrid edges(mask);
  std::vector<Polygon> outlines;
  for (int64_t y = 0; y <= mask.height; ++y) {
    for (int64_t x = 0; x < mask.width; ++x) {
      if (edges.leaves_east(x, y)) outlines.push_back(edges.take_outline(x, y));
    }
  }
  return outlines;
}

Polygon simplify_outline(const Polygon& outline, double tolerance) {
  if (outline.size() < 4) return outline;
  size_t across = 0;
  double most = -1;
  for (size_t i = 1; i < outline.size(); ++i) {
    const double distance = std::hypot(outline[i].x - outline[0].x, outline[i].y - outline[0].y);
    if (distance > most) across = i;
    most = std::max(most, distance);
  }
  std::vector<uint8_t> kept(outline.size());
  kept[0] = kept[across] = 1;
  keep_corners(outline, 0, across, tolerance, kept);
  keep_corners(outline, across, outline.size(), tolerance, kept);
  Polygon simple;
  for (size_t i = 0; i < outline.size(); ++i) {
    if (kept[i] != 0) simple.push_back(outline[i]);
  }
  return simple.size() < 3 ? outline : simple;
}

}  // namespace lockstep::image
