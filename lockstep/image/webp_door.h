// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/image/decode.h"

namespace lockstep::image {

// libwebp stands behind these; decode.cpp is their only caller. They throw as decode.h says.
ImageInfo read_webp_info(std::span<const std::byte> file);
// In pixels as stored, before the orientation.
void decode_webp(std::span<const std::byte> file, Image& image);

}  // namespace lockstep::image
