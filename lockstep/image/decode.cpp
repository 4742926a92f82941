// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/decode.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/jpeg_door.h"
#include "lockstep/image/png_door.h"
#include "lockstep/image/resample.h"
#include "lockstep/image/turn.h"

namespace lockstep::image {
namespace {

using base::Blame;
using base::Error;
using base::text;
using std::string_view_literals::operator""sv;  // NOLINT(misc-unused-using-decls): below

struct Signature {
  size_t at;
  std::string_view bytes;
  const char* name;
};

constexpr Signature kOtherFormats[] = {
    {0, "GIF8"sv, "a GIF"},
    {8, "WEBP"sv, "a WebP"},
    {0, "II*\0"sv, "a TIFF"},
    {0, "MM\0*"sv, "a TIFF"},
    {4, "ftypavif"sv, "an AVIF"},
    {4, "ftyphei"sv, "a HEIC"},
    {0, "BM"sv, "a BMP"},
    {0, "%PDF"sv, "a PDF"},
    {0, "<svg"sv, "an SVG"},
    {0, "<!DOCTYPE"sv, "an HTML"},
    {0, "<html"sv, "an HTML"},
    {0, "version https://git-lfs"sv, "a Git LFS pointer"},
    {0, "\0\0\0\x0cjP  "sv, "a JPEG 2000"},
};

ImageFormat format_of(std::span<const std::byte> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with("\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (bytes.empty()) throw Error(Blame::user, "the file is empty", "fetch it again or remove it");
  for (const auto& other : kOtherFormats) {
    if (bytes.size() > other.at && bytes.substr(other.at).starts_with(other.bytes)) {
      throw Error(Blame::user, text("neither JPEG nor PNG: this is ", other.name, " file"),
                  "convert it to JPEG or PNG");
    }
  }
  throw Error(Blame::user, "neither JPEG nor PNG", "convert it to JPEG or PNG, or remove it");
}

}  // namespace

ImageReader::ImageReader() : jpeg_(std::make_unique<JpegReader>()) {}
ImageReader::~ImageReader() = default;

ImageInfo ImageReader::open(std::span<const std::byte> file) {
  file_ = file;
  info_ = format_of(file) == ImageFormat::jpeg ? jpeg_->open(file) : read_png_info(file);
  return info_;
}

void ImageReader::read(const PartRequest& request, DecodedPart& part) {
  if (info_.format == ImageFormat::png) {
    part.x = part.y = 0;
    part.denominator = 1;
    decode_png(file_, part.image);
    part.image = orient(std::move(part.image), info_.orientation);
    return;
  }
  if (info_.orientation == 1) return jpeg_->read(request, part);
  // Turned images are rare: all of it is decoded, then turned.
  const bool swapped = info_.orientation >= 5;
  const PartRequest whole{0, 0, swapped ? info_.height : info_.width, swapped ? info_.width : info_.height,
                          request.denominator};
  jpeg_->read(whole, part);
  part.image = orient(std::move(part.image), info_.orientation);
}

ImageInfo read_image_info(std::span<const std::byte> file) {
  return ImageReader().open(file);
}

Image decode_image(std::span<const std::byte> file) {
  ImageReader reader;
  const ImageInfo info = reader.open(file);
  DecodedPart part;
  reader.read({0, 0, info.width, info.height, 1}, part);
  return std::move(part.image);
}

Image orient(Image stored, int orientation) {
  if (orientation <= 1) return stored;
  const Turn turn(orientation);
  Image seen(turn.swaps ? stored.height : stored.width, turn.swaps ? stored.width : stored.height);
  uint8_t* out = seen.pixels.data();
  for (int64_t y = 0; y < seen.height; ++y) {
    for (int64_t x = 0; x < seen.width; ++x) {
      const Turn::Pixel from = turn.stored_at(x, y, stored.width, stored.height);
      const uint8_t* in = stored.row(from.y) + 3 * from.x;
      *out++ = in[0];
      *out++ = in[1];
      *out++ = in[2];
    }
  }
  return seen;
}

std::string encode_jpeg(const Image& image, int quality) {
  return encode_jpeg_file(image, quality);
}

std::string with_restart_markers(std::span<const std::byte> file) {
  return restart_jpeg_rows(file);
}

std::string encode_png(const Image& image) {
  return encode_png_file(image);
}

Image resize_image(const Image& image, int64_t width, int64_t height) {
  const auto axis = [](int64_t from, int64_t to) {
    return Axis{.num_outputs = to, .scale = static_cast<double>(from) / static_cast<double>(to), .high = from};
  };
  std::vector<float> values(static_cast<size_t>(width * height * 3));
  Resampler().run(image, axis(image.width, width), axis(image.height, height), {}, values.data());
  Image resized(width, height);
  for (size_t i = 0; i < values.size(); ++i) resized.pixels[i] = static_cast<uint8_t>(std::lround(values[i] * 255));
  return resized;
}

}  // namespace lockstep::image
