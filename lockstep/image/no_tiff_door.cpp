// SPDX-License-Identifier: Apache-2.0
// Built in place of tiff_door.cpp where tiffio.h (4.5 or later) is missing: everything else works, and this format says
// why it does not.
#include "lockstep/base/error.h"
#include "lockstep/image/tiff_door.h"

namespace lockstep::image {
namespace {

[[noreturn]] void throw_without_tiff() {
  throw base::Error(base::Blame::machine, "this lockstep was built without TIFF",
                    "install the package libtiff-dev (4.5 or later) and build again, or convert the images to JPEG");
}

}  // namespace

ImageInfo read_tiff_info(std::span<const std::byte>) {
  throw_without_tiff();
}

void decode_tiff(std::span<const std::byte>, Image&) {
  throw_without_tiff();
}

}  // namespace lockstep::image
