// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernel {

// What of each object's mask lies in a region that it is matched with.
struct MaskTargets {
  at::Tensor values;   // float [images, regions, size, size], 0 to 1
  at::Tensor present;  // bool [images, regions]: matched with an object that has a mask
};

struct ObjectMasks {
  at::Tensor masks;    // uint8 [images, slots, cells, cells]: 0 or not; nothing but 0: the object has no mask
  at::Tensor objects;  // [images, slots, 4]: the boxes that the masks lie in (box_math.h, MaskAxis)
  at::Tensor shown;    // [images, 2]: height and width of the image
};

// ROIAlign of the masks, as torchvision does it with whole images: as many samples of a bin as it has pixels, not
// rounded to 0 or 1. matches int64 [images, regions]: the slot of each region's object, or below 0; regions
// [images, regions, 4].
MaskTargets mask_targets(const ObjectMasks& of, const at::Tensor& matches, const at::Tensor& regions, int64_t size);

}  // namespace lockstep::kernel
