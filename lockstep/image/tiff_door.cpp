// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/tiff_door.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include <tiffio.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/door_rules.h"
#include "lockstep/image/turn.h"

namespace lockstep::image {
namespace {

constexpr int64_t kUsualTile = 1024;                           // pixels of a side, at most
constexpr tmsize_t kMostTiffBytes = tmsize_t{kMaxPixels} * 8;  // in one piece: a strip of 16-bit RGBA may be all of it

// What is rare and hardly tested anywhere is refused by name.
const char* foreign_compression(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_LZW:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_JPEG:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
      return nullptr;
    case COMPRESSION_OJPEG:
      return "old-style JPEG";
    case COMPRESSION_WEBP:
      return "WebP";
    case COMPRESSION_ZSTD:
      return "Zstandard";
    case COMPRESSION_LZMA:
      return "LZMA";
    case COMPRESSION_LERC:
      return "LERC";
    case COMPRESSION_JP2000:
      return "JPEG 2000";
    default:
      return "an unknown scheme";
  }
}

const char* foreign_colours(uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_PALETTE:
    case PHOTOMETRIC_SEPARATED:
    case PHOTOMETRIC_YCBCR:
      return nullptr;
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_ITULAB:
      return "L*a*b* colours";
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV:
      return "LogLuv colours";
    case PHOTOMETRIC_CFA:
      return "a camera's raw pixels";
    default:
      return "colours of an unknown kind";
  }
}

// Channels without one for transparency.
int colours_of(uint16_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
      return 3;
    case PHOTOMETRIC_SEPARATED:
      return 4;
    default:
      return 1;
  }
}

// One file in memory, read through libtiff's callbacks. Its messages come here, not to stderr.
class TiffReader {
 public:
  explicit TiffReader(std::span<const std::byte> file) : file_(file) {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                               TIFFOpenOptionsFree);
    if (!options) throw std::bad_alloc();
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostTiffBytes);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), note_error, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), pass_over, this);
    tiff_.reset(TIFFClientOpenExt(
        "TIFF", "rm", this, read_bytes, [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; }, seek,
        [](thandle_t) { return 0; }, [](thandle_t all) { return static_cast<toff_t>(self(all).file_.size()); }, nullptr,
        nullptr, options.get()));
    if (!tiff_) damaged();
    read_header();
  }
  TiffReader(const TiffReader&) = delete;
  TiffReader& operator=(const TiffReader&) = delete;
  ~TiffReader() = default;

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int orientation() const {
    const uint16_t orientation = tag(TIFFTAG_ORIENTATION, 1);
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  }

  void read_pixels(Image& image) {
    char message[1024] = {};
    TIFFRGBAImage rgba;
    if (TIFFRGBAImageBegin(&rgba, tiff_.get(), 1, message) == 0) refuse(message);
    const std::unique_ptr<TIFFRGBAImage, void (*)(TIFFRGBAImage*)> end(&rgba, TIFFRGBAImageEnd);
    rgba.orientation = rgba.req_orientation = ORIENTATION_TOPLEFT;  // as stored: decode.cpp turns
    std::vector<uint32_t> raster(static_cast<size_t>(width_) * static_cast<size_t>(height_));
    error_.clear();
    if (TIFFRGBAImageGet(&rgba, raster.data(), static_cast<uint32_t>(width_), static_cast<uint32_t>(height_)) == 0 ||
        !error_.empty()) {
      damaged();
    }
    image.width = width_;
    image.height = height_;
    image.pixels.resize(raster.size() * 3);
    uint8_t* out = image.pixels.data();
    for (const uint32_t pixel : raster) {  // colours are multiplied by alpha already: white shines through
      const uint32_t white = 255 - TIFFGetA(pixel);
      *out++ = static_cast<uint8_t>(std::min(TIFFGetR(pixel) + white, 255u));
      *out++ = static_cast<uint8_t>(std::min(TIFFGetG(pixel) + white, 255u));
      *out++ = static_cast<uint8_t>(std::min(TIFFGetB(pixel) + white, 255u));
    }
  }

 private:
  static TiffReader& self(thandle_t all) { return *static_cast<TiffReader*>(all); }

  static tmsize_t read_bytes(thandle_t all, void* to, tmsize_t count) {
    TiffReader& reader = self(all);
    const size_t left = reader.at_ < reader.file_.size() ? reader.file_.size() - reader.at_ : 0;
    const size_t given = std::min(left, static_cast<size_t>(std::max<tmsize_t>(count, 0)));
    if (given > 0) std::memcpy(to, reader.file_.data() + reader.at_, given);
    reader.at_ += given;
    return static_cast<tmsize_t>(given);
  }

  static toff_t seek(thandle_t all, toff_t offset, int from) {
    TiffReader& reader = self(all);
    const toff_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? reader.at_ : reader.file_.size();
    return reader.at_ = base + offset;
  }

  static int note_error(TIFF*, void* all, const char*, const char* format, va_list values) {
    char message[256];
    std::vsnprintf(message, sizeof message, format, values);
    if (self(all).error_.empty()) self(all).error_ = message;
    return 1;
  }
  static int pass_over(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  uint16_t tag(uint32_t name, uint16_t otherwise) const {
    uint16_t value = otherwise;
    return TIFFGetFieldDefaulted(tiff_.get(), name, &value) != 0 ? value : otherwise;
  }

  void read_header() {
    uint32_t width = 0, height = 0, kind = 0;
    if (TIFFGetField(tiff_.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
        TIFFGetField(tiff_.get(), TIFFTAG_IMAGELENGTH, &height) == 0 || width == 0 || height == 0) {
      damaged();
    }
    refuse_too_large(width, height);
    width_ = width;
    height_ = height;
    refuse_huge_tile();
    if (TIFFGetField(tiff_.get(), TIFFTAG_SUBFILETYPE, &kind) != 0 && (kind & FILETYPE_REDUCEDIMAGE) != 0) {
      refuse("its first page is the preview of another, as in a camera's raw file");
    }
    if (const char* scheme = foreign_compression(tag(TIFFTAG_COMPRESSION, 0))) {
      refuse(base::text("compressed by ", scheme));
    }
    uint16_t photometric = 0;
    if (TIFFGetField(tiff_.get(), TIFFTAG_PHOTOMETRIC, &photometric) == 0)
      refuse("it does not say what its colours are");
    if (const char* colours = foreign_colours(photometric)) refuse(base::text("it has ", colours));
    // libtiff would take the first of them and say nothing of the others.
    const uint16_t channels = tag(TIFFTAG_SAMPLESPERPIXEL, 1);
    if (channels > colours_of(photometric) + 1) refuse(base::text("it has ", channels, " channels"));
    const uint16_t bits = tag(TIFFTAG_BITSPERSAMPLE, 1), samples = tag(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    if (samples == SAMPLEFORMAT_IEEEFP) refuse("its pixels are floating-point numbers");
    if (samples != SAMPLEFORMAT_UINT && samples != SAMPLEFORMAT_VOID)
      refuse("its pixels are signed or complex numbers");
    if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16)
      refuse(base::text("its pixels have ", bits, " bits"));
    char message[1024] = {};
    if (TIFFRGBAImageOK(tiff_.get(), message) == 0) refuse(message);
    refuse_further_pages();
  }

  // Smaller copies and masks of the first page may follow it. Another image would be passed over without a word.
  void refuse_further_pages() {
    if (TIFFLastDirectory(tiff_.get()) != 0) return;
    uint32_t kind = 0;
    const bool is_page = TIFFReadDirectory(tiff_.get()) != 0;
    if (is_page) TIFFGetField(tiff_.get(), TIFFTAG_SUBFILETYPE, &kind);
    if (is_page && (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) == 0)
      refuse("it has several pages, which is many images");
    if (TIFFSetDirectory(tiff_.get(), 0) == 0) damaged();
    error_.clear();  // of what follows the first page
  }

  // A tile is unpacked whole, however little of it is image: 16 pixels square asked for 1 GB. Tiles are 1,024 pixels
  // wide at most where somebody makes them; a larger one may be the whole image.
  void refuse_huge_tile() const {
    uint32_t width = 0, height = 0;
    if (TIFFIsTiled(tiff_.get()) == 0 || TIFFGetField(tiff_.get(), TIFFTAG_TILEWIDTH, &width) == 0 ||
        TIFFGetField(tiff_.get(), TIFFTAG_TILELENGTH, &height) == 0) {
      return;
    }
    const auto most = [](int64_t side) { return std::max(kUsualTile, (side + 15) / 16 * 16); };
    if (width <= most(width_) && height <= most(height_)) return;
    refuse(base::text("a tile of ", width, " x ", height, " in an image of ", width_, " x ", height_));
  }

  [[noreturn]] static void refuse(const std::string& what) {
    throw base::Error(base::Blame::user, base::text("a TIFF that is not read: ", what),
                      "convert it to an RGB TIFF or PNG of 8 or 16 bits: convert IN.tif OUT.png (Debian: imagemagick)");
  }

  [[noreturn]] void damaged() const {
    throw base::Error(base::Blame::user,
                      base::text("damaged TIFF: ", error_.empty() ? "its header makes no sense" : error_),
                      "replace or remove the file");
  }

  std::span<const std::byte> file_;
  toff_t at_ = 0;
  std::string error_;
  std::unique_ptr<TIFF, void (*)(TIFF*)> tiff_{nullptr, TIFFClose};
  int64_t width_ = 0;
  int64_t height_ = 0;
};

}  // namespace

ImageInfo read_tiff_info(std::span<const std::byte> file) {
  const TiffReader reader(file);
  const bool swaps = Turn(reader.orientation()).swaps;
  return {ImageFormat::tiff, swaps ? reader.height() : reader.width(), swaps ? reader.width() : reader.height(),
          reader.orientation()};
}

void decode_tiff(std::span<const std::byte> file, Image& image) {
  TiffReader(file).read_pixels(image);
}

}  // namespace lockstep::image
