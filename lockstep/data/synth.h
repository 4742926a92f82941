// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/image.h"

namespace lockstep::data {

// `shapes`: drawn pictures that a network can learn and a linear model on pixels cannot. One shape or texture each, of
// any colour, place, size and angle, on a background of gradients, noise and clutter.
constexpr int64_t kMaxShapes = 10;

// The first `count` kinds, in the order of their labels (sorted, as the folders are). REQUIRES: 2 .. kMaxShapes
std::vector<std::string> shape_names(int64_t count);

// Picture `index` of the set that `seed` fixes, showing `shape`, a square of `size` pixels. The same pixels in any
// thread and on every machine with the same mathematics library.
Image draw_shape(const std::string& shape, int64_t size, int64_t seed, int64_t index);

}  // namespace lockstep::data
