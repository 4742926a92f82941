// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/decode.h"

namespace lockstep::image {

// libpng stands behind these; decode.cpp is their only caller. They throw as decode.h says.
ImageInfo read_png_info(std::span<const std::byte> file);
// In pixels as stored, before the orientation.
void decode_png(std::span<const std::byte> file, Image& image);
std::string encode_png_file(const Image& image);

// As stored: the index of a paletted pixel, the grey value or the colours of others; label_image.cpp is the caller.
struct PngValues {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 1;
  std::vector<uint8_t> bytes = {};  // [height, width, channels]
};
// User error for 16 bits, besides.
PngValues read_png_values(std::span<const std::byte> file);
// A byte a pixel, shown in VOC's colours.
std::string encode_paletted_png(int64_t width, int64_t height, std::span<const uint8_t> values);

}  // namespace lockstep::image
