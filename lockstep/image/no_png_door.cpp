// SPDX-License-Identifier: Apache-2.0
// Built in place of png_door.cpp where png.h is missing: everything else works, and this format says why it does not.
#include "lockstep/base/error.h"
#include "lockstep/image/png_door.h"

namespace lockstep::image {
namespace {

[[noreturn]] void throw_without_png() {
  throw base::Error(base::Blame::machine, "this lockstep was built without PNG",
                    "install the package libpng-dev and build again");
}

}  // namespace

ImageInfo read_png_info(std::span<const std::byte>) {
  throw_without_png();
}

void decode_png(std::span<const std::byte>, Image&) {
  throw_without_png();
}

std::string encode_png_file(const Image&) {
  throw_without_png();
}

PngValues read_png_values(std::span<const std::byte>) {
  throw_without_png();
}

std::string encode_paletted_png(int64_t, int64_t, std::span<const uint8_t>) {
  throw_without_png();
}

}  // namespace lockstep::image
