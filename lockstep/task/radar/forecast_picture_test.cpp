// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/forecast_picture.h"

#include <gtest/gtest.h>

#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

Frames flat_frames(int64_t count, uint8_t code) {
  return {count, 8, 10, std::vector<uint8_t>(static_cast<size_t>(80 * count), code)};
}

TEST(ForecastPictureTest, StrongerEchoesHaveOtherColours) {
  EXPECT_NE(rain_color(kCodeDry), rain_color(kCodeMissing));
  for (int dbz = 10; dbz <= 50; dbz += 5)
    EXPECT_NE(rain_color(code_of_dbz(dbz)), rain_color(code_of_dbz(dbz - 5))) << dbz;
}

TEST(ForecastPictureTest, TheTruthStandsAboveTheForecast) {
  const image::Image with = forecast_sheet({flat_frames(2, 0), flat_frames(7, 100), flat_frames(7, 150), 5});
  const image::Image without = forecast_sheet({flat_frames(2, 0), {}, flat_frames(7, 150), 5});
  EXPECT_EQ(with.width, without.width);
  EXPECT_EQ(with.height, without.height + 100);  // a frame of 8 x 12 pixels, and a gap
}

TEST(ForecastPictureTest, TheAnimationHasEveryFrame) {
  const std::string file = forecast_animation({flat_frames(2, 0), flat_frames(3, 100), flat_frames(3, 150), 5});
  size_t pictures = 0;
  for (size_t at = file.find("fcTL"); at != std::string::npos; at = file.find("fcTL", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 5U);
  EXPECT_NO_THROW(image::decode_image(std::as_bytes(std::span(file.data(), file.size()))));
}

}  // namespace
}  // namespace lockstep::task
