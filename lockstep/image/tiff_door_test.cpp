// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/tiff_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;
using std::string_literals::operator""s;

std::string little_endian(uint32_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xFF);
  return out;
}

// One strip without compression; `tags` besides the needed ones or in their place, each one number of 32 bits.
struct Tiff {
  uint32_t width = 2;
  uint32_t height = 1;
  uint32_t samples = 3;
  std::string pixels = "\x01\x02\x03\x04\x05\x06"s;
  std::map<uint32_t, uint32_t> tags = {};
  std::string palette = {};  // 3 * 2^bits numbers of 16 bits

  std::string file() const {
    const auto pixels_at = uint32_t{8}, palette_at = static_cast<uint32_t>(pixels_at + pixels.size());
    std::map<uint32_t, uint32_t> all{{256, width},
                                     {257, height},
                                     {258, 8},
                                     {259, 1},
                                     {262, samples == 1 ? 1u : 2u},
                                     {273, pixels_at},
                                     {277, samples},
                                     {278, height},
                                     {279, static_cast<uint32_t>(pixels.size())}};
    for (const auto& [tag, value] : tags) all[tag] = value;
    std::string entries;
    for (const auto& [tag, value] : all) {
      entries += little_endian(tag, 2) + little_endian(4, 2) + little_endian(1, 4) + little_endian(value, 4);
    }
    if (!palette.empty()) {
      entries += little_endian(320, 2) + little_endian(3, 2) +
                 little_endian(static_cast<uint32_t>(palette.size() / 2), 4) + little_endian(palette_at, 4);
    }
    const auto directory_at = static_cast<uint32_t>(palette_at + palette.size());
    return "II*\0"s + little_endian(directory_at, 4) + pixels + palette +
           little_endian(static_cast<uint32_t>(entries.size() / 12), 2) + entries + little_endian(0, 4);
  }
};

std::vector<uint8_t> tiff_pixels(const Tiff& tiff) {
  const std::string file = tiff.file();
  return decode_image(std::as_bytes(std::span(file.data(), file.size()))).pixels;
}

std::string tiff_complaint(const std::string& file) {
  try {
    decode_image(std::as_bytes(std::span(file.data(), file.size())));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "no complaint";
}

using Bytes = std::vector<uint8_t>;

TEST(TiffDoorTest, ReadsColoursGreyPaletteAndSixteenBits) {
  EXPECT_EQ(tiff_pixels({}), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tiff_pixels({.samples = 1, .pixels = "\x10\xFF"s}), (Bytes{16, 16, 16, 255, 255, 255}));
  EXPECT_EQ(tiff_pixels({.samples = 1, .pixels = "\x10\xFF"s, .tags = {{262, 0}}}),  // 0 is white
            (Bytes{239, 239, 239, 0, 0, 0}));
  EXPECT_EQ(tiff_pixels({.samples = 1, .pixels = "\x80\x80\xFF\xFF"s, .tags = {{258, 16}}}),
            (Bytes{128, 128, 128, 255, 255, 255}));
  std::string palette(3 * 256 * 2, '\0');
  palette[2 * 7 + 1] = '\x0A', palette[2 * (256 + 7) + 1] = '\x14', palette[2 * (512 + 7) + 1] = '\x1E';
  EXPECT_EQ(tiff_pixels({.samples = 1, .pixels = "\x07\0"s, .tags = {{262, 3}}, .palette = palette}),
            (Bytes{10, 20, 30, 0, 0, 0}));
}

TEST(TiffDoorTest, LaysTransparencyOnWhiteAndTurns) {
  EXPECT_EQ(tiff_pixels({.samples = 4, .pixels = "\x0A\x14\x1E\0\x0A\x14\x1E\xFF"s, .tags = {{338, 2}}}),
            (Bytes{255, 255, 255, 10, 20, 30}));
  const std::string turned = Tiff{.tags = {{274, 6}}}.file();
  const auto bytes = std::as_bytes(std::span(turned.data(), turned.size()));
  EXPECT_EQ(read_image_info(bytes), (ImageInfo{ImageFormat::tiff, 1, 2, 6}));
  EXPECT_EQ(decode_image(bytes).pixels, (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(TiffDoorTest, RefusesByNameWhatItDoesNotRead) {
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{339, 3}}}.file()), HasSubstr("floating-point"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{339, 2}}}.file()), HasSubstr("signed"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{258, 12}}}.file()), HasSubstr("12 bits"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{259, 6}}}.file()), HasSubstr("old-style JPEG"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{262, 8}}}.file()), HasSubstr("L*a*b*"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{262, 32803}}}.file()), HasSubstr("raw pixels"));
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{254, 1}}}.file()), HasSubstr("preview"));
}

TEST(TiffDoorTest, RefusesATileFarBeyondTheImage) {
  Tiff tiff{.width = 16, .height = 16, .pixels = std::string(16 * 16 * 3, '\x07')};
  tiff.tags = {{322, 16384}, {323, 16384}, {324, 8}};
  EXPECT_THAT(tiff_complaint(tiff.file()), HasSubstr("a tile of 16384 x 16384 in an image of 16 x 16"));
  tiff.tags = {{322, 256}, {323, 256}, {324, 8}};  // as many programs make them, whatever the image
  EXPECT_THAT(tiff_complaint(tiff.file()), testing::Not(HasSubstr("a tile of")));
}

TEST(TiffDoorTest, RefusesPagesThatItWouldLeaveOut) {
  const auto with_second = [](const Tiff& second) {  // a copy of its directory, which is read for its kind alone
    const std::string first = Tiff{}.file(), other = second.file();
    const auto begin = static_cast<size_t>(static_cast<unsigned char>(other[4]));
    return first.substr(0, first.size() - 4) + little_endian(static_cast<uint32_t>(first.size()), 4) +
           other.substr(begin);
  };
  EXPECT_THAT(tiff_complaint(with_second({})), HasSubstr("several pages"));
  EXPECT_EQ(tiff_complaint(with_second({.tags = {{254, 1}}})), "no complaint");  // a smaller copy of the first
  EXPECT_EQ(tiff_complaint(with_second({.tags = {{254, 4}}})), "no complaint");  // its mask
}

TEST(TiffDoorTest, RefusesChannelsThatItWouldLeaveOut) {
  EXPECT_THAT(tiff_complaint(Tiff{.samples = 4, .pixels = "\1\2\3\4\5\6\7\10"s, .tags = {{262, 1}}}.file()),
              HasSubstr("it has 4 channels"));
}

TEST(TiffDoorTest, RejectsDamageAndAbsurdSizes) {
  const std::string file = Tiff{}.file();
  EXPECT_EQ(tiff_complaint(file), "no complaint");
  for (size_t length = 4; length < file.size() - 4; ++length) {  // the last 4 bytes: whether there is another page
    EXPECT_THAT(tiff_complaint(file.substr(0, length)), HasSubstr("TIFF")) << length;
  }
  EXPECT_THAT(tiff_complaint(Tiff{.tags = {{273, 4000}}}.file()), HasSubstr("damaged TIFF"));
  EXPECT_THAT(tiff_complaint(Tiff{.width = 1 << 19, .height = 1 << 19}.file()), HasSubstr("is refused"));
}

}  // namespace
}  // namespace lockstep::image
