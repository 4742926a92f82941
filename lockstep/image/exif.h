// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::image {

// The orientation 1 to 8 in the content of a JPEG's APP1 marker ("Exif\0\0" + TIFF); 1 when it says nothing sensible.
int exif_orientation(std::span<const std::byte> app1);
// The same of the bare TIFF, as a PNG's eXIf chunk holds it.
int tiff_orientation(std::span<const std::byte> tiff);

}  // namespace lockstep::image
