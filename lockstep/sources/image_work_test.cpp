// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/image_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/jpeg_rows.h"

namespace lockstep::sources {
namespace {

std::span<const std::byte> as_file(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

image::Image ramp(int64_t width, int64_t height) {
  image::Image image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) image.row(y)[3 * x] = static_cast<uint8_t>(255 * x / width);
  }
  return image;
}

TEST(ImageWorkTest, AddsRestartMarkersAndKeepsThePixels) {
  const std::string plain = image::encode_jpeg(ramp(64, 48), 90);
  const FinishedSample done = finish_sample({{"", plain}, {"json", "{}"}}, {});
  ASSERT_EQ(done.members.size(), 2u);
  EXPECT_EQ(done.members[0].extension, "jpg");
  EXPECT_EQ(image::decode_image(as_file(done.members[0].bytes)), image::decode_image(as_file(plain)));
  EXPECT_EQ(image::read_jpeg_layout(as_file(done.members[0].bytes)).row_offsets.size(), 3u);
  EXPECT_EQ(done.members[1], (SourceMember{"json", "{}"}));
  EXPECT_EQ(done.bytes_in, static_cast<int64_t>(plain.size()) + 2);
  EXPECT_EQ(finish_sample({{"", plain}}, {.restarts = false}).members[0].bytes, plain);
  EXPECT_EQ(finish_sample({{"", plain}}, {.restarts = false}).content_hash, done.content_hash);
}

TEST(ImageWorkTest, ShrinksTheLongerSideOnly) {
  const std::string large = image::encode_jpeg(ramp(300, 100), 95);
  const FinishedSample done = finish_sample({{"", large}}, {.max_side = 60});
  EXPECT_TRUE(done.was_shrunk);
  EXPECT_EQ(done.width, 60);
  EXPECT_EQ(done.height, 20);
  EXPECT_EQ(image::read_image_info(as_file(done.members[0].bytes)).width, 60);
  const std::string png = image::encode_png(ramp(30, 10));
  EXPECT_EQ(finish_sample({{"", png}}, {.max_side = 60}).members[0], (SourceMember{"png", png}));
  EXPECT_EQ(finish_sample({{"", png}}, {.max_side = 10}).members[0].extension, "jpg");
}

TEST(ImageWorkTest, TurnsAnImageUpright) {
  using std::string_literals::operator""s;
  std::string file = image::encode_jpeg(ramp(64, 32), 95);
  const std::string content = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
  file.insert(2, "\xFF\xE1\0"s + static_cast<char>(content.size() + 2) + content);
  const FinishedSample done = finish_sample({{"", file}}, {});
  EXPECT_TRUE(done.was_turned);
  EXPECT_EQ(done.width, 32);
  EXPECT_EQ(done.height, 64);
  const image::ImageInfo info = image::read_image_info(as_file(done.members[0].bytes));
  EXPECT_EQ(info.orientation, 1);
  EXPECT_EQ(info.height, 64);
  const image::Image seen = image::decode_image(as_file(done.members[0].bytes));
  EXPECT_LT(seen.row(2)[48], seen.row(60)[48]);  // the ramp runs downwards now
  const FinishedSample plain = finish_sample({{"", file}}, {.restarts = false});
  EXPECT_FALSE(plain.was_turned);
  EXPECT_EQ(plain.members[0].bytes, file) << "byte for byte";
  EXPECT_EQ(plain.height, 64);
  EXPECT_TRUE(finish_sample({{"", file}}, {.max_side = 20, .restarts = false}).was_turned);
}

TEST(ImageWorkTest, TurnsAPngUprightWithoutLoss) {
  using std::string_literals::operator""s;
  const image::Image stored = ramp(64, 32);
  std::string file = image::encode_png(stored);
  file.insert(33,
              "\0\0\0\x1a"  // behind the header: 26 bytes, orientation 6, with their checksum
              "eXIfII*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
              "\xb7\x48\x11\x29"s);
  const FinishedSample done = finish_sample({{"", file}}, {});
  EXPECT_TRUE(done.was_turned);
  EXPECT_EQ(done.members[0].extension, "png");
  EXPECT_EQ(image::read_image_info(as_file(done.members[0].bytes)),
            (image::ImageInfo{image::ImageFormat::png, 32, 64, 1}));
  EXPECT_EQ(image::decode_image(as_file(done.members[0].bytes)), image::orient(stored, 6));
  const FinishedSample small = finish_sample({{"", file}}, {.max_side = 32});
  const image::Image seen = image::decode_image(as_file(small.members[0].bytes));
  EXPECT_EQ(seen.width, 16);
  EXPECT_LT(seen.row(1)[24], seen.row(30)[24]) << "the ramp runs downwards";
  EXPECT_EQ(finish_sample({{"", file}}, {.restarts = false}).members[0].bytes, file) << "byte for byte";
}

TEST(ImageWorkTest, KeepsAWebpAndMakesAPngOfATiff) {
  const std::string webp(  // 3 x 2 pixels, without loss
      "RIFF\x42\0\0\0WEBPVP8L\x36\0\0\0\x2f\x02\x40\0\0\x2f\x40\x90\x6d\xb3\x41\xdc\xeb\xfe\x32\xd3\x20\x93\xb6\xc9"
      "\x5f\xff\x76\x66\x6d\x64\xd2\x36\xad\x87\xfd\xf3\xaf\xb2\xf3\x1f\x68\xe4\x91\xac\xfb\x06\x04\x02\x94\xb1\xe2\x81"
      "\x6d"
      "\x22\xfa\x1f\xe3\x05",
      74);
  const FinishedSample kept = finish_sample({{"", webp}}, {});
  EXPECT_EQ(kept.members[0], (SourceMember{"webp", webp}));
  EXPECT_EQ(finish_sample({{"", webp}}, {.max_side = 2}).members[0].extension, "jpg");
  const std::string tiff(  // one grey pixel
      "II*\0\x0a\0\0\0\x80\0\x07\0"
      "\0\x01\x04\0\x01\0\0\0\x01\0\0\0\x01\x01\x04\0\x01\0\0\0\x01\0\0\0\x02\x01\x04\0\x01\0\0\0\x08\0\0\0"
      "\x06\x01\x04\0\x01\0\0\0\x01\0\0\0\x11\x01\x04\0\x01\0\0\0\x08\0\0\0\x15\x01\x04\0\x01\0\0\0\x01\0\0\0"
      "\x17\x01\x04\0\x01\0\0\0\x01\0\0\0\0\0\0\0",
      100);
  const FinishedSample made = finish_sample({{"", tiff}}, {});
  EXPECT_EQ(made.members[0].extension, "png");
  EXPECT_EQ(image::decode_image(as_file(made.members[0].bytes)).pixels, (std::vector<uint8_t>{128, 128, 128}));
}

TEST(ImageWorkTest, NoTwoMembersOfASampleShareAName) {
  const std::string image = image::encode_jpeg(ramp(16, 8), 90);
  const FinishedSample done = finish_sample({{"", image}, {"jpg", "another"}, {"png", "a third"}}, {});
  EXPECT_EQ(done.members[1], (SourceMember{"2.jpg", "another"}));
  EXPECT_EQ(done.members[2].extension, "png");
}

TEST(ImageWorkTest, MeanAndDeviationAreThoseOfThePixels) {
  image::Image image(4, 1);
  for (size_t i = 0; i < 4; ++i) image.pixels[3 * i] = i < 2 ? 255 : 0;
  PixelSums sums;
  sums.add(image);
  sums.add(sums);
  EXPECT_EQ(sums.num_pixels, 8);
  EXPECT_DOUBLE_EQ(sums.mean()[0], 0.5);
  EXPECT_DOUBLE_EQ(sums.deviation()[0], 0.5);
  EXPECT_DOUBLE_EQ(sums.deviation()[1], 0);
}

TEST(ImageWorkTest, RefusesADamagedImageAndPassesArraysOn) {
  const std::string file = image::encode_jpeg(ramp(64, 48), 90);
  EXPECT_THROW(finish_sample({{"", file.substr(0, file.size() / 2)}}, {}), base::Error);
  EXPECT_THROW(finish_sample({{"", "text"}}, {}), base::Error);
  EXPECT_EQ(finish_sample({{"npy", "anything"}}, {}).members[0], (SourceMember{"npy", "anything"}));
}

}  // namespace
}  // namespace lockstep::sources
