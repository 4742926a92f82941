// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/image.h"

namespace lockstep::task {

// Radar frames as samples keep them: one grey PNG, the frames one below the other from the earliest on. A pixel is a
// code, that of NEXRAD's reflectivity: 0 no echo, 1 not measured, from 2 on (code - 66) / 2 dBZ. docs/nowcasting.md.
constexpr uint8_t kCodeDry = 0, kCodeMissing = 1;
constexpr double dbz_of_code(uint8_t code) {
  return (code - 66) / 2.0;
}
uint8_t code_of_dbz(double dbz);  // NaN: not measured; -infinity: no echo

// What a network sees of a code: dBZ from -10 to 60 as 0 to 1, no echo as 0, not measured as -1 (as input: 0).
constexpr double kLowestDbz = -10, kDbzRange = 70;
constexpr float kMissingPixel = -1;
float pixel_of_code(uint8_t code);
double pixel_of_dbz(double dbz);
inline double dbz_of_pixel(double pixel) {
  return kLowestDbz + kDbzRange * pixel;
}

// Z = factor R^exponent, R in mm/h. Marshall and Palmer (1948): 200, 1.6.
struct RainLaw {
  double factor = 200, exponent = 1.6;

  double dbz(double rate) const;
  double rate(double dbz) const;
};

struct Frames {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> codes = {};  // [count, height, width]

  std::span<const uint8_t> frame(int64_t i) const {
    const auto size = static_cast<size_t>(height * width);
    return std::span(codes).subspan(static_cast<size_t>(i) * size, size);
  }
  bool operator==(const Frames&) const = default;
};

std::string strip_file(const Frames& frames);
// The frames of a strip, each `height` x `width`. User error for an image of another width, or of no whole number of
// frames: the wrong grid.
Frames read_strip(std::span<const std::byte> file, int64_t height, int64_t width);
Frames frames_of(const image::Image& strip, int64_t height, int64_t width);

}  // namespace lockstep::task
