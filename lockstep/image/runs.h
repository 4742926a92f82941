// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::image {

// A mask as COCO keeps it: the lengths of runs outside, inside, outside, ... down the columns, together as many pixels
// as the image has. Here is what is done on them without the pixels in between; mask.h reads, writes and fills them.
using Runs = std::vector<int64_t>;

// What COCO writes as "segmentation" (mask.h), the parts of an object joined. User error as rasterize_mask.
Runs read_segmentation(const base::Json& segmentation, int64_t width, int64_t height);

// The same, compressed (mask.h); what is so already comes back as it is, once it has been checked.
std::string read_compressed(const base::Json& segmentation, int64_t width, int64_t height);

int64_t runs_area(std::span<const int64_t> runs);
// x, y, width, height of the smallest box around the inside; zeros when there is none.
std::array<int64_t, 4> runs_box(std::span<const int64_t> runs, int64_t height);

// Runs as pycocotools writes them: none of length 0 but the first. REQUIRES, as of the next: masks of one size.
Runs unite_runs(std::span<const int64_t> a, std::span<const int64_t> b);
Runs intersect_runs(std::span<const int64_t> a, std::span<const int64_t> b);
int64_t intersection_area(std::span<const int64_t> a, std::span<const int64_t> b);
// Of the union; of `a` alone where `b` is a crowd. 0 when they do not meet.
double runs_overlap(std::span<const int64_t> a, std::span<const int64_t> b, bool is_crowd);

}  // namespace lockstep::image
