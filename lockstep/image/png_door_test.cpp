// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/png_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;
using std::string_literals::operator""s;

std::string big_endian32(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

uint32_t zlib_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

std::string chunk(const std::string& name, const std::string& content) {
  return big_endian32(static_cast<uint32_t>(content.size())) + name + content + big_endian32(zlib_crc(name + content));
}

// A zlib stream of one stored (uncompressed) block.
std::string stored(const std::string& raw) {
  uint32_t a = 1, b = 0;
  for (const char c : raw) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto length = static_cast<uint16_t>(raw.size());
  const auto low = [](unsigned value) { return static_cast<char>(value & 0xFF); };
  return "\x78\x01\x01"s + low(length) + low(length >> 8u) + low(~length) + low(static_cast<unsigned>(~length) >> 8u) +
         raw + big_endian32(b << 16 | a);
}

struct Png {
  uint32_t width = 2;
  uint32_t height = 1;
  char bits = 8;
  char colour = 2;         // 0 gray, 2 RGB, 3 palette, 4 gray + alpha, 6 RGB + alpha
  std::string extra = {};  // chunks before the data
  std::string rows = {};   // each row begins with its filter, 0

  std::string file() const {
    const std::string header = big_endian32(width) + big_endian32(height) + bits + colour + "\0\0\0"s;
    return "\x89PNG\r\n\x1a\n"s + chunk("IHDR", header) + extra + chunk("IDAT", stored(rows)) + chunk("IEND", "");
  }
};

std::vector<uint8_t> pixels_of(const Png& png) {
  const std::string file = png.file();
  return decode_image(std::as_bytes(std::span(file.data(), file.size()))).pixels;
}

using Pixels = std::vector<uint8_t>;

TEST(PngDoorTest, ReadsEveryKindAsRgb) {
  EXPECT_EQ(pixels_of({.rows = "\0\x01\x02\x03\x04\x05\x06"s}), (Pixels{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pixels_of({.colour = 0, .rows = "\0\x10\xFF"s}), (Pixels{16, 16, 16, 255, 255, 255}));
  EXPECT_EQ(pixels_of({.bits = 1, .colour = 0, .rows = "\0\x40"s}), (Pixels{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(pixels_of({.bits = 16, .colour = 0, .rows = "\0\x80\x80\xFF\xFF"s}),
            (Pixels{128, 128, 128, 255, 255, 255}));
  EXPECT_EQ(
      pixels_of({.bits = 8, .colour = 3, .extra = chunk("PLTE", "\x09\x08\x07\x06\x05\x04"), .rows = "\0\x01\0"s}),
      (Pixels{6, 5, 4, 9, 8, 7}));
}

TEST(PngDoorTest, LaysTransparencyOnWhite) {
  EXPECT_EQ(pixels_of({.colour = 6, .rows = "\0\x0A\x14\x1E\0\x0A\x14\x1E\xFF"s}), (Pixels{255, 255, 255, 10, 20, 30}));
  EXPECT_EQ(pixels_of({.colour = 4, .rows = "\0\0\x80\x64\xFF"s}), (Pixels{127, 127, 127, 100, 100, 100}));
  EXPECT_EQ(pixels_of({.colour = 3,
                       .extra = chunk("PLTE", "\x09\x08\x07\x06\x05\x04") + chunk("tRNS", "\0"s),
                       .rows = "\0\x01\0"s}),
            (Pixels{6, 5, 4, 255, 255, 255}));
}

TEST(PngDoorTest, TurnsAsItsExifSaysBeforeOrBehindThePixels) {
  Image stored(5, 3);
  for (size_t i = 0; i < stored.pixels.size(); ++i) stored.pixels[i] = static_cast<uint8_t>(i * 5);
  const std::string plain = encode_png(stored);
  const size_t behind_header = 8 + 12 + 13, before_end = plain.size() - 12;
  for (int orientation = 0; orientation <= 9; ++orientation) {
    const std::string exif =
        "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + static_cast<char>(orientation) + "\0\0\0\0\0\0"s;
    const int expected = orientation == 0 || orientation == 9 ? 1 : orientation;  // others mean nothing
    for (const size_t at : {behind_header, before_end}) {
      std::string file = plain;
      file.insert(at, chunk("eXIf", exif));
      const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
      const Image seen = orient(stored, expected);
      EXPECT_EQ(read_image_info(bytes), (ImageInfo{ImageFormat::png, seen.width, seen.height, expected})) << at;
      EXPECT_EQ(decode_image(bytes), seen) << orientation << " at " << at;
    }
  }
}

TEST(PngDoorTest, RejectsDamageAndAbsurdSizes) {
  const auto complaint = [](const std::string& file) {
    try {
      decode_image(std::as_bytes(std::span(file.data(), file.size())));
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return std::string(error.what());
    }
    return "no complaint"s;
  };
  const std::string file = Png{.rows = "\0\x01\x02\x03\x04\x05\x06"s}.file();
  EXPECT_EQ(complaint(file), "no complaint");
  for (size_t length = 8; length < file.size(); ++length) {
    EXPECT_THAT(complaint(file.substr(0, length)), HasSubstr("damaged PNG")) << length;
  }
  std::string flipped = file;
  flipped[file.find("IDAT") + 12] ^= 1;
  EXPECT_THAT(complaint(flipped), HasSubstr("damaged PNG"));
  EXPECT_THAT(complaint(Png{.width = 1 << 19, .height = 1 << 19, .rows = "\0"s}.file()), HasSubstr("is refused"));
}

TEST(PngDoorTest, WritesWhatItReads) {
  for (const bool grey : {false, true}) {
    Image image(7, 5);
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(grey ? i / 3 * 7 : i * 5);
    const std::string file = encode_png(image);
    EXPECT_EQ(file[25], grey ? 0 : 2);  // colour type
    EXPECT_EQ(decode_image(std::as_bytes(std::span(file.data(), file.size()))), image);
  }
}

}  // namespace
}  // namespace lockstep::image
