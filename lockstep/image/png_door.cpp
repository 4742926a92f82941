// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/png_door.h"

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/door_rules.h"
#include "lockstep/image/exif.h"
#include "lockstep/image/turn.h"

namespace lockstep::image {
namespace {

class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> file) : left_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump_out, [](png_structp, png_const_charp) {});
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  void read_header() {
    guarded([this] {
      png_set_read_fn(png_, this, give_bytes);
      png_set_user_limits(png_, 1 << 20, 1 << 20);
      png_set_chunk_malloc_max(png_, 8 << 20);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
      png_read_info(png_, info_);
    });
    refuse_too_large(width(), height());
  }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }

  int64_t channels() const { return png_get_channels(png_, info_); }
  int64_t bits() const { return png_get_bit_depth(png_, info_); }

  // Everything becomes [height, width, 4], 8 bits, with an opaque alpha where the file has none.
  void read_pixels(std::vector<uint8_t>& rgba) {
    guarded([this] {
      png_set_expand(png_);    // palette, 1, 2 and 4 bits, tRNS
      png_set_scale_16(png_);  // exact rounding, where strip_16 cuts
      png_set_gray_to_rgb(png_);
      png_set_add_alpha(png_, 0xFF, PNG_FILLER_AFTER);
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    read_rows(4, rgba);
  }

  // As stored, a byte a value: small ones are unpacked and not scaled, palettes are left alone.
  void read_values(std::vector<uint8_t>& values) {
    guarded([this] {
      png_set_packing(png_);
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    read_rows(static_cast<size_t>(channels()), values);
  }

 private:
  void read_rows(size_t bytes_per_pixel, std::vector<uint8_t>& bytes) {
    const size_t stride = png_get_rowbytes(png_, info_);
    base::ensure(stride == static_cast<size_t>(width()) * bytes_per_pixel, "libpng gives whole bytes a pixel");
    bytes.resize(stride * static_cast<size_t>(height()));
    uint8_t* const pixels = bytes.data();
    const int64_t num_rows = height();
    guarded([this, pixels, stride, num_rows] {
      for (int pass = 0; pass < passes_; ++pass) {
        for (int64_t y = 0; y < num_rows; ++y) png_read_row(png_, pixels + static_cast<size_t>(y) * stride, nullptr);
      }
      png_read_end(png_, nullptr);
    });
  }

  [[noreturn]] static void jump_out(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    png_longjmp(png, 1);
  }

  static void give_bytes(png_structp png, png_bytep to, size_t count) {
    auto* self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (self->left_.size() < count) png_error(png, "the file ends too early");
    std::memcpy(to, self->left_.data(), count);
    self->left_ = self->left_.subspan(count);
  }

  // libpng reports by longjmp. `step` must therefore own nothing that has a destructor.
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(png_jmpbuf(png_)) != 0) {  // NOLINT(cert-err52-cpp): the library's only way out
      throw base::Error(base::Blame::user, base::text("damaged PNG: ", message_), "replace or remove the file");
    }
    step();
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::byte> left_;
  int passes_ = 1;
  char message_[128] = {};
};

// Of the eXIf chunk, which may stand before the pixels or behind them: looked for by hand, so that it is found without
// reading the pixels. One that is cut off is none.
int png_orientation(std::span<const std::byte> file) {
  constexpr size_t kSignature = 8, kAround = 12;  // length and name before the content of a chunk, its checksum behind
  for (size_t at = kSignature; at + kAround <= file.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<size_t>(file[at + i]);
    if (length > file.size() - at - kAround) break;
    if (std::memcmp(file.data() + at + 4, "eXIf", 4) == 0) return tiff_orientation(file.subspan(at + 8, length));
    at += kAround + length;
  }
  return 1;
}

}  // namespace

ImageInfo read_png_info(std::span<const std::byte> file) {
  PngReader reader(file);
  reader.read_header();
  const int orientation = png_orientation(file);
  const bool swaps = Turn(orientation).swaps;
  return {ImageFormat::png, swaps ? reader.height() : reader.width(), swaps ? reader.width() : reader.height(),
          orientation};
}

void decode_png(std::span<const std::byte> file, Image& image) {
  PngReader reader(file);
  reader.read_header();
  std::vector<uint8_t> rgba;
  reader.read_pixels(rgba);
  image.width = reader.width();
  image.height = reader.height();
  image.pixels.resize(rgba.size() / 4 * 3);
  lay_on_white(rgba, image.pixels.data());
}

PngValues read_png_values(std::span<const std::byte> file) {
  PngReader reader(file);
  reader.read_header();
  if (reader.bits() > 8) {
    throw base::Error(base::Blame::user, "a label image of 16 bits", "store labels in 8 bits: 0 to 255");
  }
  PngValues values{reader.width(), reader.height(), reader.channels()};
  reader.read_values(values.bytes);
  return values;
}

std::string encode_paletted_png(int64_t width, int64_t height, std::span<const uint8_t> values) {
  std::array<uint8_t, size_t{256}* 3> colours = {};
  for (unsigned i = 0; i < 256; ++i) {  // the bits of the index, the lowest ones highest in the colours
    unsigned left = i;
    for (int bit = 7; left != 0; --bit, left >>= 3U) {
      for (unsigned c = 0; c < 3; ++c) {
        colours[3 * i + c] = static_cast<uint8_t>(colours[3 * i + c] | (left >> c & 1U) << static_cast<unsigned>(bit));
      }
    }
  }
  png_image all{};
  all.version = PNG_IMAGE_VERSION;
  all.width = static_cast<png_uint_32>(width);
  all.height = static_cast<png_uint_32>(height);
  all.format = PNG_FORMAT_RGB_COLORMAP;
  all.colormap_entries = 256;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(all);
  std::string file(size, '\0');
  const int done = png_image_write_to_memory(&all, file.data(), &size, 0, values.data(), 0, colours.data());
  base::ensure(done != 0, base::text("libpng writes labels: ", all.message));
  file.resize(size);
  return file;
}

std::string encode_png_file(const Image& image) {
  bool grey = true;
  for (size_t i = 0; i < image.pixels.size() && grey; i += 3) {
    grey = image.pixels[i] == image.pixels[i + 1] && image.pixels[i] == image.pixels[i + 2];
  }
  std::vector<uint8_t> one_channel;
  for (size_t i = 0; grey && i < image.pixels.size(); i += 3) one_channel.push_back(image.pixels[i]);
  png_image all{};
  all.version = PNG_IMAGE_VERSION;
  all.width = static_cast<png_uint_32>(image.width);
  all.height = static_cast<png_uint_32>(image.height);
  all.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  const void* const pixels = grey ? one_channel.data() : image.pixels.data();
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(all);
  std::string file(size, '\0');
  const int done = png_image_write_to_memory(&all, file.data(), &size, 0, pixels, 0, nullptr);
  base::ensure(done != 0, base::text("libpng writes an image: ", all.message));
  file.resize(size);
  return file;
}

}  // namespace lockstep::image
