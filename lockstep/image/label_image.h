// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/image/detection_view.h"

// Images whose pixels are labels, not colours. A byte each: the grey value, or the index into the palette, which PASCAL
// VOC stores; the palette itself is for people.
namespace lockstep::image {

// A PNG of 1, 2, 4 or 8 bits. User error for anything else: colours, transparency and 16 bits are no labels.
Bitmap decode_labels(std::span<const std::byte> file);

// A PNG with VOC's palette, of 8 bits. The same bytes for the same labels.
std::string encode_labels(const Bitmap& labels);

// A label image, or one of more objects than a byte counts (ObjectsImage), in another size, without new values between
// the old ones.
std::string resize_labels(std::span<const std::byte> file, int64_t width, int64_t height);

}  // namespace lockstep::image
