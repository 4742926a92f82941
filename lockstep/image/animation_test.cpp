// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/animation.h"

#include <gtest/gtest.h>

#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

Image flat(uint8_t red, uint8_t green) {
  Image image(5, 4);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = red;
    image.pixels[i + 1] = green;
  }
  return image;
}

size_t count_of(const std::string& file, const std::string& word) {
  size_t count = 0;
  for (size_t at = file.find(word); at != std::string::npos; at = file.find(word, at + 1)) ++count;
  return count;
}

TEST(AnimationTest, IsAPngWhoseFirstPictureEveryReaderSees) {
  const std::vector<Image> pictures{flat(10, 200), flat(80, 20), flat(7, 9)};
  const std::string file = encode_animation(pictures, 250);
  const Image seen = decode_image(std::as_bytes(std::span(file.data(), file.size())));
  EXPECT_EQ(seen, pictures[0]);
  EXPECT_EQ(count_of(file, "acTL"), 1U);
  EXPECT_EQ(count_of(file, "fcTL"), 3U);
  EXPECT_EQ(count_of(file, "fdAT"), 2U);
}

TEST(AnimationTest, GreyPicturesStayOfOneKind) {
  const std::string file = encode_animation(std::vector<Image>{flat(0, 0), flat(3, 250)}, 100);
  EXPECT_EQ(file[25], 2);  // RGB
  EXPECT_NO_THROW(decode_image(std::as_bytes(std::span(file.data(), file.size()))));
}

}  // namespace
}  // namespace lockstep::image
