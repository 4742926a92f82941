// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

using testing::HasSubstr;

std::string complaint_about(const std::string& content) {
  try {
    decode_image(std::as_bytes(std::span(content.data(), content.size())));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.fix(), "");
    return error.what();
  }
  return "no complaint";
}

TEST(DecodeTest, SaysWhatAFileIsThatIsNoImage) {
  EXPECT_EQ(complaint_about(""), "the file is empty");
  EXPECT_EQ(complaint_about("just some text"), "neither JPEG nor PNG");
  EXPECT_EQ(complaint_about("GIF89a..."), "neither JPEG nor PNG: this is a GIF file");
  EXPECT_EQ(complaint_about("RIFF....WEBPVP8 "), "neither JPEG nor PNG: this is a WebP file");
  EXPECT_EQ(complaint_about("version https://git-lfs.github.com/spec/v1"),
            "neither JPEG nor PNG: this is a Git LFS pointer file");
  EXPECT_THAT(complaint_about("\xFF\xD8\xFF"), HasSubstr("damaged JPEG"));
  EXPECT_THAT(complaint_about("\x89PNG\r\n\x1a\n"), HasSubstr("damaged PNG"));
}

// The letter F in 2 x 3 pixels tells all eight orientations apart.
TEST(DecodeTest, OrientsAsExifSays) {
  Image stored(2, 3);
  for (size_t i = 0; i < 6; ++i) stored.pixels[3 * i] = static_cast<uint8_t>(i);  // 01 / 23 / 45
  const auto seen = [&](int orientation) {
    const Image image = orient(stored, orientation);
    std::string text;
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < image.width; ++x) text += static_cast<char>('0' + image.row(y)[3 * x]);
      text += '/';
    }
    return text;
  };
  EXPECT_EQ(seen(1), "01/23/45/");
  EXPECT_EQ(seen(2), "10/32/54/");
  EXPECT_EQ(seen(3), "54/32/10/");
  EXPECT_EQ(seen(4), "45/23/01/");
  EXPECT_EQ(seen(5), "024/135/");
  EXPECT_EQ(seen(6), "420/531/");
  EXPECT_EQ(seen(7), "531/420/");
  EXPECT_EQ(seen(8), "135/024/");
}

TEST(DecodeTest, ResizesAWholeImage) {
  Image image(4, 2);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i % 3 * 100);
  const Image small = resize_image(image, 2, 1);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{0, 100, 200, 0, 100, 200}));
}

}  // namespace
}  // namespace lockstep::image
