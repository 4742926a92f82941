// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/image/decode.h"

namespace lockstep::image {

// libtiff stands behind these; decode.cpp is their only caller. They throw as decode.h says.
ImageInfo read_tiff_info(std::span<const std::byte> file);
// The first page, in pixels as stored, before the orientation.
void decode_tiff(std::span<const std::byte> file, Image& image);

}  // namespace lockstep::image
