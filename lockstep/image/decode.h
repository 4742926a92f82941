// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/image/image.h"

namespace lockstep::image {

class JpegReader;

// JPEG, PNG, WebP and TIFF files in memory to RGB, 8 bits. Gray, CMYK, YCCK and palette images become RGB; 16 bits
// become 8; what is transparent is laid on white; the EXIF orientation is applied, so that width and height are as
// seen. User error with the reason (without a path: the caller knows it) for anything that is damaged, truncated, of
// another format, or above kMaxPixels. Machine error when this build has no decoder for the format.
constexpr int64_t kMaxPixels = int64_t{1} << 27;  // a header may promise 4 Gpx in 20 bytes: refused before any memory

enum class ImageFormat { jpeg, png, webp, tiff };  // numbered as in the index of a shard
constexpr int kNumImageFormats = 4;

// Of a file's name, in lower case and without its dot: jpg, jpeg, png, webp, tif, tiff.
constexpr bool is_image_extension(std::string_view extension) {
  for (const std::string_view known : {"jpg", "jpeg", "png", "webp", "tif", "tiff"}) {
    if (extension == known) return true;
  }
  return false;
}
// The same for people.
constexpr std::string_view kImageNames = ".jpg, .jpeg, .png, .webp, .tif or .tiff";

struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  int64_t width = 0;  // as seen
  int64_t height = 0;
  int orientation = 1;  // EXIF, 1 to 8; 5 to 8 exchange width and height

  bool operator==(const ImageInfo&) const = default;
};

ImageInfo read_image_info(std::span<const std::byte> file);

// The most that decoding holds at once, in bytes a pixel.
int64_t decode_bytes_per_pixel(ImageFormat format, bool progressive, bool turned);
// The same of a whole file, by a quick look at its header. 0 for what decode_image refuses.
int64_t decode_bytes(std::span<const std::byte> file);

Image decode_image(std::span<const std::byte> file);

// The part of the image that will be used, in pixels as seen, and how far it may be shrunk while decoding.
struct PartRequest {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  int64_t denominator = 1;  // 1, 2, 4 or 8: a JPEG is decoded at that fraction of its size
};

// At least the requested part: `image` holds the pixels from (x, y) of the image at 1/denominator of its size.
// At denominator 1 they equal those of decode_image bit by bit.
struct DecodedPart {
  Image image;
  int64_t x = 0;
  int64_t y = 0;
  int64_t denominator = 1;
};

// One file after the other, a part of each, with one look at each header. Keeps its tables; one per thread.
class ImageReader {
 public:
  ImageReader();
  ~ImageReader();

  ImageInfo open(std::span<const std::byte> file);  // `file` must live until the read()
  // Once per open(). `part` is reused: its memory serves from one image to the next.
  void read(const PartRequest& request, DecodedPart& part);

 private:
  std::span<const std::byte> file_;
  ImageInfo info_;
  std::unique_ptr<JpegReader> jpeg_;
};

// Turns the stored image into the one that is seen, by the EXIF orientation 1 to 8.
Image orient(Image stored, int orientation);

// A JPEG file, 4:2:0, `quality` 1 to 100. The same bytes for the same pixels.
std::string encode_jpeg(const Image& image, int quality);

// The same JPEG image, coefficient by coefficient, as a sequential file of one scan with a restart marker after each
// row of MCUs, so that rows can be decoded on their own. EXIF and other comments are left out. Files of four inks and
// turned ones (EXIF orientation) come back as they are.
std::string with_restart_markers(std::span<const std::byte> file);

// A PNG file, grey when the image is. The same bytes for the same pixels.
std::string encode_png(const Image& image);

// The whole image in another size (bilinear, antialiased): thumbnails, contact sheets.
Image resize_image(const Image& image, int64_t width, int64_t height);

}  // namespace lockstep::image
