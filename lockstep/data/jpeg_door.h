// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/data/decode.h"

namespace lockstep::data {

// libjpeg-turbo stands behind these; decode.cpp is their only caller. They throw as decode.h says. Besides errors,
// libjpeg's warnings about damaged data are errors here: a half-grey picture must not be trained on in silence.

ImageInfo read_jpeg_info(std::span<const std::byte> file);

// In pixels as stored, before the orientation. `part.image` starts up to one block before the request (part.x).
void decode_jpeg_part(std::span<const std::byte> file, const PartRequest& request, DecodedPart& part);

std::string encode_jpeg_file(const Image& image, int quality);

std::string restart_jpeg_rows(std::span<const std::byte> file);

}  // namespace lockstep::data
