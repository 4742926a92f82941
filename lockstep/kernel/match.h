// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

constexpr int64_t kBelow = -1;    // a match: overlaps no object, or less than `low`
constexpr int64_t kBetween = -2;  // neither that, nor enough to be matched

struct MatchOptions {
  double low = 0.5;
  double high = 0.5;
  // Boxes that overlap an object more than all others do are matched too, however little that is.
  bool best_of_object = false;
};

// The object that each box overlaps most (the first of equals), or kBelow or kBetween: int64 [images, boxes]. boxes
// [images or 1, boxes, 4]; objects [images, slots, 4] with labels int64 [images, slots], 0 in an empty slot. An object
// that no box overlaps, as one without area, is matched by none. No matrix of all pairs is made.
at::Tensor match(const at::Tensor& boxes, const at::Tensor& objects, const at::Tensor& labels,
                 const MatchOptions& options);

}  // namespace lockstep::kernel
