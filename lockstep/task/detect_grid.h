// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/image/detection_view.h"
#include "lockstep/spec/image_size.h"

namespace lockstep::task {

constexpr int64_t kDetectCell = 32;  // pixels of the canvas, in each direction

// What FastBox is to say of a canvas, cell by cell and row by row.
struct DetectGrid {
  int64_t rows = 0;
  int64_t columns = 0;

  explicit DetectGrid(const spec::ImageSize& canvas)
      : rows(canvas.height / kDetectCell), columns(canvas.width / kDetectCell) {}
  int64_t cells() const { return rows * columns; }
};

// Where the values of the cells go.
struct CellTargets {
  std::span<float> object;  // 1: the cell answers for an object, 0: for none
  std::span<float> box;     // four a cell: the object's centre from the cell's, its width and height, in pixels
  std::span<float> mask;    // 1; 0 where an ignored region lies: what is said there counts for nothing
};

// A cell answers for the first object that it touches, if the centres of both are less than `focus` cells apart in each
// direction; else for none, whatever other objects it touches (KittiBox's rule). Boxes are in pixels of the canvas.
void fill_grid(const DetectGrid& grid, double focus, std::span<const image::Box> objects,
               std::span<const image::Box> ignored, const CellTargets& out);

}  // namespace lockstep::task
