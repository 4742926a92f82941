// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/webp_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;

std::string webp_from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::span<const std::byte> webp_span(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

// 3 x 2 pixels as Pillow writes them without loss: red, green, blue / 10 20 30, 200 100 50, white.
constexpr const char* kLossless =
    "5249464642000000574542505650384c360000002f024000002f40906db341dcebfe32d32093b6c95fff76666d64d236ad87fdf3afb2f31f68"
    "e491acfb06040294b1e2816d22fa1fe305";
constexpr const char* kWithAlpha =  // of the first row 255, 128, 0
    "5249464646000000574542505650384c390000002f024000102f40906d538979dd5fe61a64d236ed5bff7a666d621a623ab8f56f8940d2c6e6"
    "e3c91f98f333b2aa4d1090902979e48b88fe472c00";
constexpr const char* kTurned =  // EXIF orientation 6
    "524946467600000057454250565038580a000000080000000200000100005650384c360000002f024000002f40906db341dcebfe32d32093b6"
    "c95fff76666d64d236ad87fdf3afb2f31f68e491acfb06040294b1e2816d22fa1fe305455849461a0000004d4d002a00000008000101120003"
    "000000010006000000000000";
constexpr const char* kAnimated =
    "52494646d800000057454250565038580a00000002000000020000010000414e494d06000000000000000000414e4d46520000000000000000"
    "00020000010000000000025650384c390000002f024000002f40906d3389791df0aed32093b6c95d43733f6d64d236d443eff957334b9dff40"
    "039b5ddf2550c836021cbad7e0482ea2ff31bc00414e4d4652000000000000000000020000010000000000005650384c390000002f02400000"
    "2f40906d3389791df0aed32093b6c95d43733f6d6402165b07b7fe695432ff01e6bed9c32a8242b611e0d0bd24477211fd8f770000";

std::string webp_complaint(const std::string& file) {
  try {
    decode_image(webp_span(file));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "no complaint";
}

TEST(WebpDoorTest, ReadsPixelsAlphaAndOrientation) {
  const std::string file = webp_from_hex(kLossless);
  EXPECT_EQ(read_image_info(webp_span(file)), (ImageInfo{ImageFormat::webp, 3, 2, 1}));
  const Image plain = decode_image(webp_span(file));
  EXPECT_EQ(plain.pixels,
            (std::vector<uint8_t>{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 200, 100, 50, 255, 255, 255}));
  const Image on_white = decode_image(webp_span(webp_from_hex(kWithAlpha)));
  EXPECT_EQ(on_white.pixels,
            (std::vector<uint8_t>{255, 0, 0, 127, 255, 127, 255, 255, 255, 10, 20, 30, 200, 100, 50, 255, 255, 255}));
  const std::string turned = webp_from_hex(kTurned);
  EXPECT_EQ(read_image_info(webp_span(turned)), (ImageInfo{ImageFormat::webp, 2, 3, 6}));
  EXPECT_EQ(decode_image(webp_span(turned)), orient(plain, 6));
}

TEST(WebpDoorTest, RejectsDamageAnimationAndAbsurdSizes) {
  const std::string file = webp_from_hex(kLossless);
  for (size_t length = 12; length < file.size(); ++length) {
    EXPECT_THAT(webp_complaint(file.substr(0, length)), HasSubstr("damaged WebP")) << length;
  }
  EXPECT_THAT(webp_complaint(webp_from_hex(kAnimated)), HasSubstr("animated"));
  std::string huge = file;  // the size of a lossless image: 14 bits each, less one, behind the signature 2f
  huge.replace(21, 4, "\xff\xff\xff\x0f");
  EXPECT_THAT(webp_complaint(huge), HasSubstr("an image of 16384 x 16384 is refused"));
}

}  // namespace
}  // namespace lockstep::image
