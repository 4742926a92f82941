// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/webp_door.h"

#include <cstring>
#include <new>

#include <webp/decode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/door_rules.h"
#include "lockstep/image/exif.h"
#include "lockstep/image/turn.h"

namespace lockstep::image {
namespace {

using base::Blame;
using base::Error;
using base::text;

const uint8_t* webp_bytes(std::span<const std::byte> file) {
  return reinterpret_cast<const uint8_t*>(file.data());
}

void check_webp(VP8StatusCode status) {
  if (status == VP8_STATUS_OK) return;
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
  throw Error(Blame::user,
              text("damaged WebP: ", status == VP8_STATUS_NOT_ENOUGH_DATA       ? "the file ends too early"
                                     : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "a feature that libwebp does not know"
                                                                                : "its bytes make no sense"),
              "replace or remove the file");
}

WebPBitstreamFeatures read_webp_features(std::span<const std::byte> file) {
  WebPBitstreamFeatures features;
  check_webp(WebPGetFeatures(webp_bytes(file), file.size(), &features));
  if (features.has_animation != 0) {
    throw Error(Blame::user, "an animated WebP, which is many images", "convert one of them to JPEG or PNG");
  }
  refuse_too_large(features.width, features.height);
  return features;
}

// Of the EXIF chunk, which stands behind the pixels. One that is cut off is none.
int webp_orientation(std::span<const std::byte> file) {
  constexpr size_t kHeader = 12, kBefore = 8;  // "RIFF", size, "WEBP"; name and length before the content of a chunk
  for (size_t at = kHeader; at + kBefore <= file.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length |= std::to_integer<size_t>(file[at + 4 + i]) << 8 * i;
    if (length > file.size() - at - kBefore) break;
    if (std::memcmp(file.data() + at, "EXIF", 4) == 0) {
      const auto content = file.subspan(at + kBefore, length);
      const bool as_in_jpeg = length >= 6 && std::memcmp(content.data(), "Exif\0\0", 6) == 0;  // some writers
      return as_in_jpeg ? exif_orientation(content) : tiff_orientation(content);
    }
    at += kBefore + length + length % 2;
  }
  return 1;
}

}  // namespace

ImageInfo read_webp_info(std::span<const std::byte> file) {
  const WebPBitstreamFeatures features = read_webp_features(file);
  const int orientation = webp_orientation(file);
  const bool swaps = Turn(orientation).swaps;
  return {ImageFormat::webp, swaps ? features.height : features.width, swaps ? features.width : features.height,
          orientation};
}

void decode_webp(std::span<const std::byte> file, Image& image) {
  WebPDecoderConfig config;
  base::ensure(WebPInitDecoderConfig(&config) != 0, "libwebp has the version of its header");
  config.input = read_webp_features(file);
  const auto width = static_cast<size_t>(config.input.width), height = static_cast<size_t>(config.input.height);
  const bool has_alpha = config.input.has_alpha != 0;
  std::vector<uint8_t> rgba(has_alpha ? width * height * 4 : 0);
  image.width = config.input.width;
  image.height = config.input.height;
  image.pixels.resize(width * height * 3);
  std::vector<uint8_t>& pixels = has_alpha ? rgba : image.pixels;
  config.output.colorspace = has_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {pixels.data(), static_cast<int>(width * (has_alpha ? 4 : 3)), pixels.size()};
  check_webp(WebPDecode(webp_bytes(file), file.size(), &config));
  if (has_alpha) lay_on_white(rgba, image.pixels.data());
}

}  // namespace lockstep::image
