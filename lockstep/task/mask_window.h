// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/image/detection_view.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {

// What a batch holds of an object's mask: `size` cells a side over the whole pixels that the object's box touches.
// Where these are no more than `size`, a cell is a pixel of the network's image; else `size` cells of equal size share
// them (on each axis alone). So kernel::MaskAxis reads it.
//
// Fills `out` [size, size]: 1 inside. `box` is the object's in pixels of the view's result, `view` is in pixels of
// `image` (view_of_list). The nearest pixel of the mask, as torchvision resizes masks. Nothing is inside of an object
// without an outline: its mask is not learnt. Takes no more memory and time than the outline is long, however large the
// image is.
void fill_mask_window(const Object& object, const AnnotatedImage& image, const image::View& view, const image::Box& box,
                      int64_t size, uint8_t* out);

// Single pixels of a mask on an image `height` high that is given by its runs (image/runs.h), 1 inside:
// out[y * columns.size() + x] is the one at columns[x], rows[y]. REQUIRES: rows ascend; both lie within the image.
void sample_runs(std::span<const int64_t> runs, int64_t height, std::span<const int64_t> columns,
                 std::span<const int64_t> rows, uint8_t* out);

}  // namespace lockstep::task
