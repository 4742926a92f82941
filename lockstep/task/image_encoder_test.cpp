// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/image_encoder.h"

#include <gtest/gtest.h>

#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

// Counts what is asked of it.
class Counting final : public ImageEncoder {
 public:
  using ImageEncoder::ImageEncoder;
  int encoded = 0, drawn = 0, blanked = 0;

 protected:
  void encode_rest(const StoredSample& /*sample*/, FieldPointers /*rest*/) override { ++encoded; }
  void draw_rest(int32_t /*label*/, base::Random /*random*/, FieldPointers /*rest*/) override { ++drawn; }
  void blank_rest(FieldPointers /*rest*/) override { ++blanked; }
};

TEST(ImageEncoderTest, ShowsAnImageOfAnyShapeInThePixelsOfTheJob) {
  spec::Data data;
  data.image_size = {2, 6};
  data.center_crop = 1;
  data.pixels = spec::Pixels::uint8;
  Counting encoder(data);
  image::Image image(12, 4);
  image.pixels.assign(image.pixels.size(), 100);
  const std::string jpeg = image::encode_jpeg(image, 95);
  std::vector<std::byte> pixels(2 * 6 * 3);
  std::byte* row[] = {pixels.data()};
  encoder.encode({0, std::as_bytes(std::span(jpeg)), {}}, std::nullopt, row);
  for (const std::byte pixel : pixels) EXPECT_NEAR(static_cast<int>(pixel), 100, 2);
  encoder.draw(3, base::Random(1, 0, 0), row);
  encoder.blank(row);
  EXPECT_EQ(static_cast<int>(pixels[0]), 124);  // the mean red
  EXPECT_EQ(encoder.encoded + encoder.drawn + encoder.blanked, 3);
}

}  // namespace
}  // namespace lockstep::task
