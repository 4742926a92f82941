// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/image/decode.h"

namespace lockstep::image {

// libpng stands behind these; decode.cpp is their only caller. They throw as decode.h says.
ImageInfo read_png_info(std::span<const std::byte> file);
// In pixels as stored, before the orientation.
void decode_png(std::span<const std::byte> file, Image& image);
std::string encode_png_file(const Image& image);

}  // namespace lockstep::image
