// SPDX-License-Identifier: Apache-2.0
// Built in place of jpeg_door.cpp where jpeglib.h is missing: everything else works, and this format says why it does
// not.
#include "lockstep/base/error.h"
#include "lockstep/image/jpeg_door.h"

namespace lockstep::image {
namespace {

[[noreturn]] void throw_without_jpeg() {
  throw base::Error(base::Blame::machine, "this lockstep was built without JPEG",
                    "install the package libjpeg62-turbo-dev and build again");
}

}  // namespace

class JpegFile {};

JpegReader::JpegReader() = default;
JpegReader::~JpegReader() = default;

ImageInfo JpegReader::open(std::span<const std::byte>) {
  throw_without_jpeg();
}

void JpegReader::read(const PartRequest&, DecodedPart&, JpegEntropy) {
  throw_without_jpeg();
}

void JpegReader::discard() {
  throw_without_jpeg();
}

bool own_entropy_agrees(void (*)(DecodedPart&)) {
  return false;
}

std::string encode_jpeg_file(const Image&, int) {
  throw_without_jpeg();
}

std::string restart_jpeg_rows(std::span<const std::byte>) {
  throw_without_jpeg();
}

}  // namespace lockstep::image
