// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/converter.h"
#include "lockstep/image/jpeg_door.h"
#include "lockstep/image/png_door.h"
#include "lockstep/image/resample.h"
#include "lockstep/image/tiff_door.h"
#include "lockstep/image/turn.h"
#include "lockstep/image/webp_door.h"

namespace lockstep::image {
namespace {

using base::Blame;
using base::Error;
using base::text;
using std::string_view_literals::operator""sv;  // NOLINT(misc-unused-using-decls): below

constexpr std::string_view kJpeg = "\xFF\xD8\xFF"sv;
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n"sv;

struct Signature {
  size_t at;
  std::string_view bytes;
  const char* name;
  std::string_view converter;  // empty: there is none
};

constexpr Signature kOtherFormats[] = {
    {0, "GIF8"sv, "a GIF", kOtherConverter},
    {0, "BM"sv, "a BMP", kOtherConverter},
    {0, "8BPS"sv, "a Photoshop", kOtherConverter},
    {0, "v/1\x01"sv, "an OpenEXR", kOtherConverter},
    {0, "\0\0\0\x0cjP  "sv, "a JPEG 2000", kOtherConverter},
    {0, "\xFF\x4F\xFF\x51"sv, "a JPEG 2000", kOtherConverter},
    {0, "\xFF\x0A"sv, "a JPEG XL", kJxlConverter},
    {0, "\0\0\0\x0cJXL "sv, "a JPEG XL", kJxlConverter},
    {4, "ftypavi"sv, "an AVIF", kHeifConverter},
    {4, "ftyphei"sv, "a HEIC", kHeifConverter},
    {4, "ftyphev"sv, "a HEIC", kHeifConverter},
    {4, "ftypmif1"sv, "a HEIF", kHeifConverter},
    {4, "ftypmsf1"sv, "a HEIF", kHeifConverter},
    {4, "ftypcrx "sv, "a Canon raw", kRawConverter},
    {4, "ftyp"sv, "a video", "ffmpeg -i IN OUT%04d.jpg (Debian: ffmpeg)"},
    {8, "CR\x02\0"sv, "a Canon raw", kRawConverter},
    {0, "FUJIFILMCCD-RAW"sv, "a Fujifilm raw", kRawConverter},
    {128, "DICM"sv, "a DICOM", "dcmj2pnm --write-png IN OUT.png (Debian: dcmtk)"},
    {0, "%PDF"sv, "a PDF", "pdftoppm -png IN OUT (Debian: poppler-utils)"},
    {0, "<svg"sv, "an SVG", "rsvg-convert IN -o OUT.png (Debian: librsvg2-bin)"},
    {0, "<!DOCTYPE"sv, "an HTML", ""},
    {0, "<html"sv, "an HTML", ""},
    {0, "version https://git-lfs"sv, "a Git LFS pointer", "git lfs pull"},
};

bool is_webp(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.substr(std::min<size_t>(bytes.size(), 8)).starts_with("WEBP");
}

// As a camera's raw file begins too.
bool is_tiff(std::string_view bytes) {
  constexpr std::array kStarts{"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv};  // + of a BigTIFF
  return std::any_of(kStarts.begin(), kStarts.end(), [&](std::string_view start) { return bytes.starts_with(start); });
}

ImageFormat format_of(std::span<const std::byte> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with(kJpeg)) return ImageFormat::jpeg;
  if (bytes.starts_with(kPng)) return ImageFormat::png;
  if (is_webp(bytes)) return ImageFormat::webp;
  if (bytes.empty()) throw Error(Blame::user, "the file is empty", "fetch it again or remove it");
  for (const auto& other : kOtherFormats) {  // before TIFF: a camera's raw file begins like one
    if (bytes.size() > other.at && bytes.substr(other.at).starts_with(other.bytes)) {
      throw Error(Blame::user, text("neither JPEG, PNG, WebP nor TIFF: this is ", other.name, " file"),
                  !other.converter.empty() ? text("convert it: ", other.converter) : "fetch the image itself");
    }
  }
  if (is_tiff(bytes)) return ImageFormat::tiff;
  throw Error(Blame::user, "neither JPEG, PNG, WebP nor TIFF", "convert it to JPEG or PNG, or remove it");
}

ImageInfo read_whole_info(ImageFormat format, std::span<const std::byte> file) {
  return format == ImageFormat::png    ? read_png_info(file)
         : format == ImageFormat::webp ? read_webp_info(file)
                                       : read_tiff_info(file);
}

void decode_whole(ImageFormat format, std::span<const std::byte> file, Image& image) {
  return format == ImageFormat::png    ? decode_png(file, image)
         : format == ImageFormat::webp ? decode_webp(file, image)
                                       : decode_tiff(file, image);
}

int64_t big_endian(std::span<const std::byte> bytes) {
  int64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<int64_t>(byte);
  return value;
}

struct HeaderSize {
  int64_t width = 0;
  int64_t height = 0;
  bool progressive = false;
};

HeaderSize png_size(std::span<const std::byte> file) {
  constexpr size_t kWidth = 16, kHeight = 20;  // of IHDR, the first chunk
  if (file.size() < kHeight + 4) return {};
  return {big_endian(file.subspan(kWidth, 4)), big_endian(file.subspan(kHeight, 4)), false};
}

// Of the first SOF segment.
HeaderSize jpeg_size(std::span<const std::byte> file) {
  for (size_t at = 2; at + 9 < file.size();) {
    const auto lead = std::to_integer<unsigned>(file[at]), marker = std::to_integer<unsigned>(file[at + 1]);
    if (lead != 0xFF) break;
    if (marker == 0xFF || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // filling, or a marker alone
      at += marker == 0xFF ? 1 : 2;
      continue;
    }
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) {
      return {big_endian(file.subspan(at + 7, 2)), big_endian(file.subspan(at + 5, 2)), (marker & 0x03) == 0x02};
    }
    if (marker == 0xDA) break;
    at += 2 + static_cast<size_t>(big_endian(file.subspan(at + 2, 2)));
  }
  return {};
}

HeaderSize library_size(ImageFormat format, std::span<const std::byte> file) {
  try {
    const ImageInfo info = read_whole_info(format, file);
    return {info.width, info.height, false};
  } catch (const Error&) {  // decoding it says what is wrong
    return {};
  }
}

}  // namespace

// The pixels (3), the RGBA that libpng gives (4), the coefficients of all scans of a progressive JPEG (two each), the
// other copy while an image is turned; libwebp's own pixels (4), a strip of 16-bit RGBA (8), which may be all of a
// TIFF.
int64_t decode_bytes_per_pixel(ImageFormat format, bool progressive, bool turned) {
  switch (format) {
    case ImageFormat::png:
      return 3 + 4;
    case ImageFormat::webp:
      return 3 + 4 + 4;
    case ImageFormat::tiff:
      return 3 + 4 + 8;
    case ImageFormat::jpeg:
      break;
  }
  return 3 + (progressive ? 6 : 0) + (turned ? 3 : 0);
}

int64_t decode_bytes(std::span<const std::byte> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const ImageFormat format = bytes.starts_with(kPng) ? ImageFormat::png
                             : is_webp(bytes)        ? ImageFormat::webp
                             : is_tiff(bytes)        ? ImageFormat::tiff
                                                     : ImageFormat::jpeg;
  const HeaderSize frame = format == ImageFormat::png    ? png_size(file)
                           : format != ImageFormat::jpeg ? library_size(format, file)
                           : bytes.starts_with(kJpeg)    ? jpeg_size(file)
                                                         : HeaderSize{};
  if (frame.width > kMaxPixels || frame.height > kMaxPixels || frame.width * frame.height > kMaxPixels) return 0;
  return frame.width * frame.height * decode_bytes_per_pixel(format, frame.progressive, false);
}

ImageReader::ImageReader() : jpeg_(std::make_unique<JpegReader>()) {}
ImageReader::~ImageReader() = default;

ImageInfo ImageReader::open(std::span<const std::byte> file) {
  file_ = file;
  const ImageFormat format = format_of(file);
  info_ = format == ImageFormat::jpeg ? jpeg_->open(file) : read_whole_info(format, file);
  return info_;
}

void ImageReader::read(const PartRequest& request, DecodedPart& part) {
  if (info_.format != ImageFormat::jpeg) {
    part.x = part.y = 0;
    part.denominator = 1;
    decode_whole(info_.format, file_, part.image);
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
