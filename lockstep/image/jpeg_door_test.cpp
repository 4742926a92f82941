// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;

Image smooth_image(int64_t width, int64_t height) {
  Image image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      uint8_t* pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(255 * x / width);
      pixel[1] = static_cast<uint8_t>(255 * y / height);
      pixel[2] = static_cast<uint8_t>(127 + 120 * std::sin(static_cast<double>(x + 2 * y) / 9));
    }
  }
  return image;
}

Image noisy_image(int64_t width, int64_t height) {
  Image image = smooth_image(width, height);
  base::Random random(9);
  for (auto& value : image.pixels) value = static_cast<uint8_t>((value + random.bits() % 160) / 2);
  return image;
}

std::span<const std::byte> jpeg_bytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

std::string complaint_about_jpeg(const std::string& file) {
  try {
    decode_image(jpeg_bytes(file));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "no complaint";
}

std::string with_orientation(const std::string& file, char orientation) {
  using std::string_literals::operator""s;
  const std::string content =
      "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + orientation + "\0\0\0\0\0\0\0"s;
  const std::string marker = "\xFF\xE1\0"s + static_cast<char>(content.size() + 2) + content;
  return file.substr(0, 2) + marker + file.substr(2);
}

TEST(JpegDoorTest, GivesBackAnImageNearlyAsItWas) {
  const Image image = smooth_image(67, 45);
  const std::string file = encode_jpeg(image, 95);
  EXPECT_EQ(read_image_info(jpeg_bytes(file)), (ImageInfo{ImageFormat::jpeg, 67, 45, 1}));
  const Image decoded = decode_image(jpeg_bytes(file));
  ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) sum += std::abs(image.pixels[i] - decoded.pixels[i]);
  EXPECT_LT(sum / static_cast<double>(image.pixels.size()), 3);
  EXPECT_EQ(encode_jpeg(image, 95), file);
}

TEST(JpegDoorTest, TrustsItsOwnReadingOfTheCodesOnlyWhereItGivesTheLibrarysPixels) {
  EXPECT_TRUE(own_entropy_agrees());
  EXPECT_FALSE(own_entropy_agrees([](DecodedPart& part) { part.image.pixels.back() ^= 1; }));
  EXPECT_FALSE(own_entropy_agrees([](DecodedPart&) { throw base::Error(base::Blame::user, "damaged JPEG"); }));
}

TEST(JpegDoorTest, APartEqualsTheWholeBitByBit) {
  const std::string file = encode_jpeg(noisy_image(203, 157), 85);
  const Image whole = decode_image(jpeg_bytes(file));
  ImageReader reader;
  base::Random random(1);
  DecodedPart part;
  for (int i = 0; i < 300; ++i) {
    PartRequest request;
    request.x = random.below(203);
    request.y = random.below(157);
    request.width = 1 + random.below(203 - request.x);
    request.height = 1 + random.below(157 - request.y);
    reader.open(jpeg_bytes(file));
    reader.read(request, part);
    ASSERT_LE(part.x, request.x);
    ASSERT_GE(part.x + part.image.width, request.x + request.width);
    ASSERT_LE(part.y, request.y);
    ASSERT_GE(part.y + part.image.height, request.y + request.height);
    for (int64_t y = request.y; y < request.y + request.height; ++y) {
      const uint8_t* expected = whole.row(y) + 3 * request.x;
      const uint8_t* given = part.image.row(y - part.y) + 3 * (request.x - part.x);
      ASSERT_TRUE(std::equal(expected, expected + 3 * request.width, given)) << "row " << y << " of case " << i;
    }
  }
}

TEST(JpegDoorTest, AScaledDecodeShowsTheSameImageSmaller) {
  const Image image = smooth_image(160, 120);
  const std::string file = encode_jpeg(image, 95);
  for (const int64_t denominator : {2, 4, 8}) {
    DecodedPart part;
    ImageReader reader;
    reader.open(jpeg_bytes(file));
    reader.read({0, 0, 160, 120, denominator}, part);
    EXPECT_EQ(part.denominator, denominator);
    const Image expected = resize_image(image, 160 / denominator, 120 / denominator);
    ASSERT_EQ(part.image.pixels.size(), expected.pixels.size());
    double sum = 0;
    for (size_t i = 0; i < expected.pixels.size(); ++i) sum += std::abs(expected.pixels[i] - part.image.pixels[i]);
    EXPECT_LT(sum / static_cast<double>(expected.pixels.size()), 6) << denominator;
  }
}

TEST(JpegDoorTest, AppliesTheOrientation) {
  const std::string file = encode_jpeg(smooth_image(40, 24), 90);
  const Image stored = decode_image(jpeg_bytes(file));
  for (char orientation = 1; orientation <= 8; ++orientation) {
    const std::string turned = with_orientation(file, orientation);
    const ImageInfo info = read_image_info(jpeg_bytes(turned));
    EXPECT_EQ(info.orientation, orientation);
    EXPECT_EQ(info.width, orientation >= 5 ? 24 : 40);
    EXPECT_EQ(decode_image(jpeg_bytes(turned)), orient(stored, orientation));
  }
}

TEST(JpegDoorTest, RejectsEveryTruncation) {
  const std::string file = encode_jpeg(noisy_image(64, 64), 85);
  for (size_t length = 3; length < file.size(); length += 37) {
    EXPECT_THAT(complaint_about_jpeg(file.substr(0, length)), HasSubstr("JPEG")) << length;
  }
  EXPECT_THAT(complaint_about_jpeg(file.substr(0, file.size() - 2)), HasSubstr("its end is missing"));
  EXPECT_EQ(complaint_about_jpeg(file + "some bytes behind the end"), "no complaint");
}

TEST(JpegDoorTest, NoticesATruncationBelowTheAskedPart) {
  const std::string file = encode_jpeg(noisy_image(64, 256), 85);
  const std::string cut = file.substr(0, file.size() * 3 / 4);
  DecodedPart part;
  ImageReader reader;
  reader.open(jpeg_bytes(cut));
  EXPECT_THROW(reader.read({0, 0, 64, 16, 1}, part), base::Error);
}

TEST(JpegDoorTest, RefusesAnImageOfAbsurdSize) {
  std::string file = encode_jpeg(smooth_image(16, 16), 90);
  const size_t frame = file.find("\xFF\xC0");
  for (size_t i = 5; i < 9; ++i) file[frame + i] = '\xF0';  // height and width 61680
  EXPECT_THAT(complaint_about_jpeg(file), HasSubstr("61680 x 61680 is refused"));
}

TEST(JpegDoorTest, SurvivesFlippedBytes) {
  const std::string file = encode_jpeg(noisy_image(48, 48), 80);
  base::Random random(2);
  int rejected = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = file;
    damaged[static_cast<size_t>(random.below(static_cast<int64_t>(file.size())))] ^= static_cast<char>(random.bits());
    rejected += complaint_about_jpeg(damaged) != "no complaint";
  }
  EXPECT_GT(rejected, 20);
}

}  // namespace
}  // namespace lockstep::image
