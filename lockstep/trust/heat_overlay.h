// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/image/image.h"

namespace lockstep::trust {

// The image with a heat map of the same size ([height, width], 0 to 1) over it: blue for a little, red for the most,
// nothing for 0. Small ones are enlarged for people, to `least` pixels of the shorter side.
image::Image heat_overlay(const image::Image& shown, std::span<const float> map, int64_t least = 224);

}  // namespace lockstep::trust
