// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/image/detection_view.h"
#include "lockstep/image/mask.h"

namespace lockstep::image {

// The outlines of a mask, along the edges of its pixels: filled by the even-odd rule they are the mask, holes included.
// Pixels that meet at a corner alone are apart.
std::vector<Polygon> trace_outlines(const Mask& mask);

// Fewer corners, of which the outline strays by `tolerance` pixels at most (Douglas and Peucker 1973). One that would
// have no area is given as it is.
Polygon simplify_outline(const Polygon& outline, double tolerance);

}  // namespace lockstep::image
