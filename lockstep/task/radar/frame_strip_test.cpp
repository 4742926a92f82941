// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/frame_strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

TEST(FrameStripTest, CodesAreThoseOfLevelTwo) {
  EXPECT_EQ(dbz_of_code(66), 0);
  EXPECT_EQ(dbz_of_code(166), 50);
  EXPECT_EQ(code_of_dbz(50.1), 166);
  EXPECT_EQ(code_of_dbz(NAN), kCodeMissing);
  EXPECT_EQ(code_of_dbz(-INFINITY), kCodeDry);
  EXPECT_EQ(code_of_dbz(-200), 2);
  EXPECT_EQ(code_of_dbz(200), 255);
}

TEST(FrameStripTest, PixelsRunFrom0To1) {
  EXPECT_EQ(pixel_of_code(kCodeDry), 0);
  EXPECT_EQ(pixel_of_code(kCodeMissing), kMissingPixel);
  EXPECT_FLOAT_EQ(pixel_of_code(code_of_dbz(25)), 0.5F);
  EXPECT_EQ(pixel_of_code(255), 1);
  EXPECT_EQ(pixel_of_code(2), 0);
}

// Z = 200 R^1.6: the usual figures.
TEST(FrameStripTest, RainFollowsMarshallAndPalmer) {
  const RainLaw law;
  EXPECT_NEAR(law.dbz(1), 23.0103, 1e-4);
  EXPECT_NEAR(law.rate(20), 0.65, 0.005);
  EXPECT_NEAR(law.rate(35), 5.6, 0.05);
  EXPECT_NEAR(law.rate(40), 11.5, 0.05);
  EXPECT_NEAR(law.rate(53), 74.9, 0.1);
  EXPECT_NEAR(law.rate(law.dbz(7.5)), 7.5, 1e-9);
}

TEST(FrameStripTest, FramesComeBack) {
  Frames frames{3, 2, 4, {}};
  for (int i = 0; i < 24; ++i) frames.codes.push_back(static_cast<uint8_t>(i * 10));
  const std::string file = strip_file(frames);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  EXPECT_EQ(read_strip(bytes, 2, 4), frames);
  EXPECT_EQ(frames.frame(1)[0], 80);
  EXPECT_THROW(read_strip(bytes, 2, 3), base::Error);
  try {
    (void)read_strip(bytes, 4, 4);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("wrong grid: a strip of 4 x 6 pixels"));
  }
}

}  // namespace
}  // namespace lockstep::task
