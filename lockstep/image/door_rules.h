// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

// What the doors of several formats share.
namespace lockstep::image {

// User error for more than kMaxPixels: asked of the header, before memory is taken.
inline void refuse_too_large(int64_t width, int64_t height) {
  if (width > 0 && height > 0 && height <= kMaxPixels / width) return;
  throw base::Error(base::Blame::user, base::text("an image of ", width, " x ", height, " is refused"),
                    base::text("shrink it to at most ", kMaxPixels, " pixels"));
}

// On white: the page that cut-out images are made for. `rgb` has three bytes for each four of `rgba`.
inline void lay_on_white(std::span<const uint8_t> rgba, uint8_t* rgb) {
  for (size_t i = 0; i + 3 < rgba.size(); i += 4) {
    const unsigned alpha = rgba[i + 3];
    for (size_t c = 0; c < 3; ++c) {
      *rgb++ = static_cast<uint8_t>((rgba[i + c] * alpha + 255u * (255u - alpha) + 127u) / 255u);
    }
  }
}

}  // namespace lockstep::image
