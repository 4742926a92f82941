// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/mask_window.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "lockstep/image/runs.h"

namespace lockstep::task {
namespace {

constexpr double kHairOfPixel = 1e-9;  // 3 * (1 / 3.0) is the first of a pixel, not the last of another

// The pixel of the annotated image behind each cell.
std::vector<int64_t> cell_sources(const image::Axis& axis, double low, double high, int64_t most) {
  const double first = std::floor(low), pixels = std::max(1.0, std::ceil(high) - first);
  const auto cells = static_cast<int64_t>(std::min(pixels, static_cast<double>(most)));
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < cells; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * pixels / static_cast<double>(cells);
    const double shown = std::floor(first + middle);  // a pixel of the result; its first source is torch's nearest
    const double from_begin = axis.reversed ? static_cast<double>(axis.num_outputs) - 1 - shown : shown;
    const auto source = static_cast<int64_t>(std::floor(axis.begin + from_begin * axis.scale + kHairOfPixel));
    sources.push_back(std::clamp(source, axis.low, axis.high - 1));
  }
  return sources;
}

}  // namespace

void fill_mask_window(const Object& object, const AnnotatedImage& image, const image::View& view, const image::Box& box,
                      int64_t size, uint8_t* out) {
  std::fill_n(out, size * size, uint8_t{0});
  if (object.outline.is_null()) return;
  const std::vector<int64_t> columns = cell_sources(view.x, box.left, box.right, size);
  const std::vector<int64_t> rows = cell_sources(view.y, box.top, box.bottom, size);
  std::vector<uint8_t> inside(columns.size() * rows.size());
  const image::Runs runs = image::read_segmentation(object.outline, image.width, image.height);
  sample_runs(runs, image.height, columns, rows, inside.data());
  for (size_t y = 0; y < rows.size(); ++y)
    std::copy_n(inside.data() + y * columns.size(), columns.size(), out + static_cast<int64_t>(y) * size);
}

void sample_runs(std::span<const int64_t> runs, int64_t height, std::span<const int64_t> columns,
                 std::span<const int64_t> rows, uint8_t* out) {
  std::vector<int64_t> ends(runs.size());  // of each run, in pixels counted down the columns
  std::partial_sum(runs.begin(), runs.end(), ends.begin());
  for (size_t x = 0; x < columns.size() && !rows.empty(); ++x) {
    const int64_t top = columns[x] * height;
    auto run = std::upper_bound(ends.begin(), ends.end(), top + rows.front());  // the one with the pixel in it
    for (size_t y = 0; y < rows.size(); ++y) {
      while (run != ends.end() && *run <= top + rows[y]) ++run;
      out[y * columns.size() + x] = (run - ends.begin()) % 2 == 1 ? 1 : 0;
    }
  }
}

}  // namespace lockstep::task
