// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Which program turns an image that is not decoded here into one that is, with the Debian package that has it.
namespace lockstep::image {

constexpr std::string_view kHeifConverter = "heif-convert IN OUT.jpg (Debian: libheif-examples)";
constexpr std::string_view kJxlConverter = "djxl IN OUT.png (Debian: libjxl-tools)";
constexpr std::string_view kRawConverter = "dcraw -T IN (Debian: dcraw)";
constexpr std::string_view kOtherConverter = "convert IN OUT.png (Debian: imagemagick)";

// Of a file's extension, in lower case and without its dot; empty: it does not name an image of another kind.
std::string_view converter_for(std::string_view extension);

}  // namespace lockstep::image
