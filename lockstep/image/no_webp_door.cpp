// SPDX-License-Identifier: Apache-2.0
// Built in place of webp_door.cpp where webp/decode.h is missing: everything else works, and this format says why it
// does not.
#include "lockstep/base/error.h"
#include "lockstep/image/webp_door.h"

namespace lockstep::image {
namespace {

[[noreturn]] void throw_without_webp() {
  throw base::Error(base::Blame::machine, "this lockstep was built without WebP",
                    "install the package libwebp-dev and build again, or convert the images to JPEG");
}

}  // namespace

ImageInfo read_webp_info(std::span<const std::byte>) {
  throw_without_webp();
}

void decode_webp(std::span<const std::byte>, Image&) {
  throw_without_webp();
}

}  // namespace lockstep::image
