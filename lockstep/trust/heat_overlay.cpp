// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/heat_overlay.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::trust {
namespace {

constexpr double kMostHidden = 0.6;  // of a pixel under the hottest spot

// Blue, cyan, yellow, red from 0 to 1.
double heat_channel(double value, int channel) {
  const double centre = channel == 0 ? 1.0 : channel == 1 ? 0.5 : 0.0;
  return std::clamp(1.5 - 3 * std::abs(value - centre), 0.0, 1.0);
}

}  // namespace

image::Image heat_overlay(const image::Image& shown, std::span<const float> map, int64_t least) {
  base::ensure(static_cast<int64_t>(map.size()) == shown.width * shown.height, "a value for each pixel");
  image::Image out = shown;
  for (size_t p = 0; p < map.size(); ++p) {
    const double value = std::clamp<double>(map[p], 0, 1);
    const double hidden = kMostHidden * std::sqrt(value);
    for (int c = 0; c < 3; ++c) {
      uint8_t& pixel = out.pixels[p * 3 + static_cast<size_t>(c)];
      pixel = static_cast<uint8_t>(std::lround((1 - hidden) * pixel + hidden * 255 * heat_channel(value, c)));
    }
  }
  const int64_t side = std::min(out.width, out.height);
  if (side >= least) return out;
  const int64_t zoom = (least + side - 1) / side;
  return image::resize_image(out, out.width * zoom, out.height * zoom);
}

}  // namespace lockstep::trust
