// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/label_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

// 3 x 2 pixels of 2 bits with a palette: 0 1 2 / 3 2 0.
constexpr uint8_t kTwoBits[] = {
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x00, 0x02, 0x02, 0x03, 0x00, 0x00, 0x00, 0xE0, 0x1A, 0x8E, 0x89, 0x00, 0x00, 0x00, 0x0C, 0x50,
    0x4C, 0x54, 0x45, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00, 0x80, 0x00, 0x80, 0x80, 0x00, 0x38, 0xEC, 0x04, 0x80,
    0x00, 0x00, 0x00, 0x0C, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x90, 0x60, 0x78, 0x00, 0x00, 0x01, 0x2C, 0x00,
    0xF9, 0x09, 0x54, 0x23, 0x75, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};

TEST(LabelImageTest, LabelsComeBackWithThePaletteOfVoc) {
  const Bitmap labels{3, 2, {0, 1, 15, 255, 2, 0}};
  const std::string file = encode_labels(labels);
  EXPECT_EQ(decode_labels(bytes_of(file)), labels);
  const Image seen = decode_image(bytes_of(file));
  const auto colour = [&](size_t i) {
    return std::vector<int>{seen.pixels[3 * i], seen.pixels[3 * i + 1], seen.pixels[3 * i + 2]};
  };
  EXPECT_EQ(colour(0), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(colour(1), (std::vector<int>{128, 0, 0}));
  EXPECT_EQ(colour(2), (std::vector<int>{192, 128, 128}));
  EXPECT_EQ(colour(3), (std::vector<int>{224, 224, 192}));
}

TEST(LabelImageTest, SmallIndicesAreUnpackedAndNotTakenForColours) {
  EXPECT_EQ(decode_labels(std::as_bytes(std::span(kTwoBits))), (Bitmap{3, 2, {0, 1, 2, 3, 2, 0}}));
}

TEST(LabelImageTest, GreyValuesAreLabels) {
  Image grey(2, 1);
  grey.pixels = {1, 1, 1, 3, 3, 3};
  EXPECT_EQ(decode_labels(bytes_of(encode_png(grey))), (Bitmap{2, 1, {1, 3}}));
}

TEST(LabelImageTest, ColoursAndOtherFormatsAreRefused) {
  Image red(1, 1);
  red.pixels = {255, 0, 0};
  EXPECT_THROW(decode_labels(bytes_of(encode_png(red))), base::Error);
  EXPECT_THROW(decode_labels(bytes_of(encode_jpeg(red, 90))), base::Error);
}

TEST(LabelImageTest, AnotherSizeTakesTheNearestPixel) {
  const std::string file = encode_labels({4, 2, {0, 1, 2, 3, 4, 5, 6, 255}});
  EXPECT_EQ(decode_labels(bytes_of(resize_labels(bytes_of(file), 2, 1))), (Bitmap{2, 1, {5, 255}}));
  Image objects(2, 1);
  objects.pixels = {1, 2, 0, 7, 0, 0};
  const std::string shrunk = resize_labels(bytes_of(encode_png(objects)), 1, 1);
  EXPECT_EQ(decode_image(bytes_of(shrunk)).pixels, (std::vector<uint8_t>{7, 0, 0}));
}

}  // namespace
}  // namespace lockstep::image
