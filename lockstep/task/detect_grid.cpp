// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect_grid.h"

#include <algorithm>
#include <cmath>

namespace lockstep::task {
namespace {

using image::Box;

constexpr double kMargin = 2;  // pixels that an ignored region is taken to be smaller by on each side

bool touches(const Box& object, const Box& cell) {
  return std::min(object.right, cell.right) > std::max(object.left, cell.left) &&
         std::min(object.bottom, cell.bottom) > std::max(object.top, cell.top);
}

// Its cells along one axis, first and last; KittiBox truncates towards 0.
std::pair<int64_t, int64_t> cells_of(double begin, double end, int64_t count) {
  const auto cell = [](double pixel) { return static_cast<int64_t>(pixel / kDetectCell); };
  return {std::max<int64_t>(cell(begin + kMargin), 0), std::min(cell(end - kMargin), count - 1)};
}

}  // namespace

void fill_grid(const DetectGrid& grid, double focus, std::span<const Box> objects, std::span<const Box> ignored,
               const CellTargets& out) {
  std::fill(out.object.begin(), out.object.end(), 0.0F);
  std::fill(out.box.begin(), out.box.end(), 0.0F);
  std::fill(out.mask.begin(), out.mask.end(), 1.0F);
  const auto side = static_cast<double>(kDetectCell);
  for (int64_t i = 0; i < grid.cells(); ++i) {
    const int64_t row = i / grid.columns;
    const double left = side * static_cast<double>(i % grid.columns), top = side * static_cast<double>(row);
    const Box cell{left, top, left + side, top + side};
    const auto first =
        std::find_if(objects.begin(), objects.end(), [&](const Box& object) { return touches(object, cell); });
    if (first == objects.end()) continue;
    const double x = (first->left + first->right) / 2 - (left + side / 2);
    const double y = (first->top + first->bottom) / 2 - (top + side / 2);
    if (std::abs(x) >= focus * side || std::abs(y) >= focus * side) continue;
    const auto at = static_cast<size_t>(i);
    out.object[at] = 1;
    const double values[] = {x, y, first->right - first->left, first->bottom - first->top};
    std::transform(std::begin(values), std::end(values), out.box.begin() + 4 * i,
                   [](double value) { return static_cast<float>(value); });
  }
  for (const Box& region : ignored) {
    const auto [left, right] = cells_of(region.left, region.right, grid.columns);
    const auto [top, bottom] = cells_of(region.top, region.bottom, grid.rows);
    for (int64_t row = top; row <= bottom; ++row) {
      for (int64_t column = left; column <= right; ++column) {
        out.mask[static_cast<size_t>(row * grid.columns + column)] = 0;
      }
    }
  }
}

}  // namespace lockstep::task
