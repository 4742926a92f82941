// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::image {

struct Image {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3], red green blue

  Image() = default;
  Image(int64_t image_width, int64_t image_height)
      : width(image_width), height(image_height), pixels(static_cast<size_t>(image_width * image_height * 3)) {}
  uint8_t* row(int64_t y) { return pixels.data() + y * width * 3; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * width * 3; }
  bool operator==(const Image&) const = default;
};

}  // namespace lockstep::image
