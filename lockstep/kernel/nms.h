// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

// Boxes that are kept, of every image by itself.
struct Kept {
  at::Tensor indices;  // int64 [images, slots]: best score first; 0 in an empty slot
  at::Tensor valid;    // bool [images, slots]: false in an empty slot
};

// Non-maximum suppression: from the best score down, a box is kept unless it overlaps one kept before, of the same
// group, by more than `threshold` (intersection over union). boxes [images, boxes, 4], scores float [images, boxes],
// groups int64 [images, boxes]. A box whose score is below 0, or no number, has no part. Of equal scores the first box
// is better. The result has `slots` however many are kept: no gradient, no waiting for the device.
Kept nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups, double threshold, int64_t slots);

}  // namespace lockstep::kernel
