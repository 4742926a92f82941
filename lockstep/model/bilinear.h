// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::model {

// What stands in `map` [batch, channels, height, width] at `points` [batch, points, 2]: x and y in pixels of the map, 0
// being the middle of its first one, between pixels the mean of the four around, beyond the edge what the edge has.
// [batch, points, channels]. The gradient goes to the map and, through the weights of the four, to the points. Its sums
// are taken in one order, on a GPU too; a coordinate that is no number counts as 0, so that no index leaves the map.
at::Tensor sample_bilinear(const at::Tensor& map, const at::Tensor& points);

}  // namespace lockstep::model
