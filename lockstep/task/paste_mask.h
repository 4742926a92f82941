// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::task {

// The mask of a detection as runs on its image (COCO's: down the columns, outside first): [side, side] probabilities,
// padded by one, drawn bilinearly into the box widened by as much, inside where more than one half. The very pixels of
// torchvision's paste_masks_in_image. `box`: left, top, right, bottom in pixels of the image, which may be of any size:
// only runs are kept. A box that is no box has no pixel.
std::vector<int64_t> paste_mask(std::span<const float> probabilities, int64_t side, const std::array<float, 4>& box,
                                int64_t width, int64_t height);

}  // namespace lockstep::task
