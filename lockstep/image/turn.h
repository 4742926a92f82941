// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::image {

// How a stored image becomes the one that is seen, by its EXIF orientation 1 to 8: mirrored from right to left, from
// bottom to top, then columns and rows exchanged.
struct Turn {
  bool from_right = false;
  bool from_bottom = false;
  bool swaps = false;

  explicit Turn(int orientation)
      : from_right(orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8),
        from_bottom(orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7),
        swaps(orientation >= 5) {}

  struct Pixel {
    int64_t x;
    int64_t y;
  };
  // The stored pixel (of width x height) that is seen at x, y.
  Pixel stored_at(int64_t x, int64_t y, int64_t width, int64_t height) const {
    const int64_t across = swaps ? y : x, down = swaps ? x : y;
    return {from_right ? width - 1 - across : across, from_bottom ? height - 1 - down : down};
  }
};

}  // namespace lockstep::image
