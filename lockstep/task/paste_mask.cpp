// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/paste_mask.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

constexpr float kInside = 0.5F;
constexpr float kFarthest = 1e9F;  // pixels; beyond, a network has lost its way

// Runs that are written one after the other.
class RunWriter {
 public:
  void add(int64_t count, bool inside) {
    if (count <= 0) return;
    if (inside != inside_) runs_.push_back(0);
    inside_ = inside;
    runs_.back() += count;
  }
  std::vector<int64_t> take() { return std::move(runs_); }

 private:
  std::vector<int64_t> runs_{0};
  bool inside_ = false;
};

// One axis of the widened box: which pixels it covers and which of them the image shows.
struct PastedAxis {
  int64_t first = 0;   // pixel of the box's first one; may lie outside
  int64_t pixels = 1;  // of the box
  int64_t begin = 0;   // [begin, end) on the image
  int64_t end = 0;
};

PastedAxis pasted_axis(float low, float high, float widen, int64_t size) {
  const float centre = (high + low) * 0.5F, half = (high - low) * 0.5F * widen;
  const auto first = static_cast<int64_t>(centre - half), last = static_cast<int64_t>(centre + half);
  return {first, std::max<int64_t>(last - first + 1, 1), std::max<int64_t>(first, 0), std::min(last + 1, size)};
}

// Between which two of `count` values pixel `i` lies, as torch's bilinear interpolation has it.
struct Between {
  size_t low = 0;
  size_t high = 0;
  float share = 0;  // of `high`

  Between(int64_t i, int64_t count, int64_t pixels) {
    const float scale = static_cast<float>(count) / static_cast<float>(pixels);
    const float at = std::max(scale * (static_cast<float>(i) + 0.5F) - 0.5F, 0.0F);
    const int64_t floor = std::min(static_cast<int64_t>(at), count - 1);
    low = static_cast<size_t>(floor);
    high = static_cast<size_t>(std::min(floor + 1, count - 1));
    share = std::min(at - static_cast<float>(floor), 1.0F);
  }
  float of(float a, float b) const { return (1 - share) * a + share * b; }
};

// Pixels [begin, end) that lie between the same two values.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
  size_t low = 0;
  size_t high = 0;
};

std::vector<Interval> intervals_of(const std::vector<Between>& pixels) {
  std::vector<Interval> all;
  for (int64_t i = 0; i < std::ssize(pixels); ++i) {
    const Between& at = pixels[static_cast<size_t>(i)];
    if (all.empty() || all.back().low != at.low) all.push_back({i, i, at.low, at.high});
    all.back().end = i + 1;
  }
  return all;
}

bool is_box(const std::array<float, 4>& box) {
  const auto is_near = [](float value) { return std::abs(value) < kFarthest; };  // false for what is no number
  return std::all_of(box.begin(), box.end(), is_near) && box[2] >= box[0] && box[3] >= box[1];
}

}  // namespace

std::vector<int64_t> paste_mask(std::span<const float> probabilities, int64_t side, const std::array<float, 4>& box,
                                int64_t width, int64_t height) {
  base::ensure(std::ssize(probabilities) == side * side, "a mask of its side");
  const int64_t count = side + 2;
  const float widen = static_cast<float>(count) / static_cast<float>(side);
  if (!is_box(box)) return {width * height};
  const PastedAxis across = pasted_axis(box[0], box[2], widen, width);
  const PastedAxis down = pasted_axis(box[1], box[3], widen, height);
  if (across.begin >= across.end || down.begin >= down.end) return {width * height};
  std::vector<Between> rows;
  for (int64_t y = down.begin; y < down.end; ++y) rows.emplace_back(y - down.first, count, down.pixels);
  const std::vector<Interval> intervals = intervals_of(rows);
  const auto padded = [&](int64_t row, size_t column) {
    const int64_t y = row - 1, x = static_cast<int64_t>(column) - 1;
    const bool is_border = y < 0 || x < 0 || y >= side || x >= side;
    return is_border ? 0.0F : probabilities[static_cast<size_t>(y * side + x)];
  };
  RunWriter writer;
  writer.add(across.begin * height, false);
  std::vector<float> column(static_cast<size_t>(count));
  for (int64_t x = across.begin; x < across.end; ++x) {
    const Between here(x - across.first, count, across.pixels);
    for (int64_t row = 0; row < count; ++row)
      column[static_cast<size_t>(row)] = here.of(padded(row, here.low), padded(row, here.high));
    writer.add(down.begin, false);
    for (const Interval& interval : intervals) {
      const float low = column[interval.low], high = column[interval.high];
      if ((low > kInside) == (high > kInside)) {  // and so is all that lies between them
        writer.add(interval.end - interval.begin, low > kInside);
        continue;
      }
      for (int64_t i = interval.begin; i < interval.end; ++i)
        writer.add(1, rows[static_cast<size_t>(i)].of(low, high) > kInside);
    }
    writer.add(height - down.end, false);
  }
  writer.add((width - across.end) * height, false);
  return writer.take();
}

}  // namespace lockstep::task
