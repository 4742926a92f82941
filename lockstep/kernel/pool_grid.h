// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernel {

// Windows along one dim, as at::max_pool2d counts them: with `ceil` the last may reach beyond the map, but starts in
// it.
constexpr int64_t pooled_size(int64_t size, int64_t window, int64_t stride, int64_t padding, bool ceil) {
  const int64_t room = size + 2 * padding - window;
  int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (count - 1) * stride >= size + padding) --count;
  return count;
}

}  // namespace lockstep::kernel
