// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/augment.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::image {
namespace {

TEST(AugmentTest, TheCentreViewIsResizeThenCentreCrop) {
  spec::Data data;  // 224 of 256
  const View view = center_view(500, 375, data);
  EXPECT_DOUBLE_EQ(view.y.scale, 375.0 / 256);
  EXPECT_DOUBLE_EQ(view.x.scale, 500.0 / 341);       // 256 * 500 / 375 = 341.3
  EXPECT_DOUBLE_EQ(view.y.begin, 16 * 375.0 / 256);  // (256 - 224) / 2
  EXPECT_DOUBLE_EQ(view.x.begin, 58 * 500.0 / 341);  // 58.5 rounds to even
  EXPECT_EQ(view.x.high, 500);
  EXPECT_FALSE(view.x.reversed);
}

TEST(AugmentTest, RandomCropsKeepScaleRatioAndBounds) {
  spec::Data data;
  data.crop_scale_min = 0.2;
  int flips = 0;
  double area = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const View view = random_view(400, 300, data, base::Random(1, 0, i));
    const auto width = static_cast<double>(view.x.high - view.x.low);
    const auto height = static_cast<double>(view.y.high - view.y.low);
    ASSERT_GE(view.x.low, 0);
    ASSERT_LE(view.x.high, 400);
    ASSERT_GE(view.y.low, 0);
    ASSERT_LE(view.y.high, 300);
    ASSERT_GE(width * height, 0.19 * 400 * 300);
    ASSERT_GE(width / height, 0.73);
    ASSERT_LE(width / height, 1.36);
    ASSERT_EQ(view.colour, Colour{});
    ASSERT_EQ(view.erased.width, 0);
    flips += view.x.reversed;
    area += width * height / (400 * 300);
  }
  EXPECT_NEAR(flips, 1000, 100);
  EXPECT_NEAR(area / 2000, 0.5, 0.03);  // below 0.6: large crops of other ratios do not fit
}

TEST(AugmentTest, DependsOnTheNumbersOnly) {
  const spec::Data data;
  EXPECT_EQ(random_view(400, 300, data, base::Random(1, 2, 3)), random_view(400, 300, data, base::Random(1, 2, 3)));
  EXPECT_NE(random_view(400, 300, data, base::Random(1, 2, 3)), random_view(400, 300, data, base::Random(1, 3, 3)));
}

TEST(AugmentTest, AnImageTooNarrowForAnyCropIsCutInTheCentre) {
  const View view = random_view(1000, 10, {}, base::Random(1));
  EXPECT_EQ(view.x.high - view.x.low, 13);
  EXPECT_EQ(view.y.high - view.y.low, 10);
  EXPECT_EQ(random_view(1, 1, {}, base::Random(1)).x.high, 1);
}

TEST(AugmentTest, NoneAndNoFlipMeanIt) {
  spec::Data data;
  data.augment = spec::Augment::none;
  EXPECT_EQ(random_view(400, 300, data, base::Random(1)), center_view(400, 300, data));
  data.augment = spec::Augment::standard;
  data.flip = false;
  for (uint64_t i = 0; i < 50; ++i) EXPECT_FALSE(random_view(400, 300, data, base::Random(1, 0, i)).x.reversed);
}

TEST(AugmentTest, StrongChangesColourAndErases) {
  spec::Data data;
  data.augment = spec::Augment::strong;
  int erased = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const View view = random_view(400, 300, data, base::Random(1, 0, i));
    ASSERT_NE(view.colour, Colour{});
    ASSERT_LE(view.erased.x + view.erased.width, 224);
    ASSERT_LE(view.erased.y + view.erased.height, 224);
    erased += view.erased.width > 0;
  }
  EXPECT_NEAR(erased, 250, 60);
}

TEST(AugmentTest, DecodesNoSmallerThanTheCropIsShown) {
  spec::Data data;
  data.image_size = 100;
  for (const auto& [side, denominator] : {std::pair{199, 1}, {200, 2}, {399, 2}, {400, 4}, {800, 8}, {3000, 8}}) {
    data.center_crop = 1;
    const View view = center_view(side, side, data);
    EXPECT_EQ(part_for(view, {ImageFormat::jpeg, side, side, 1}, 8).denominator, denominator) << side;
    EXPECT_EQ(part_for(view, {ImageFormat::jpeg, side, side, 1}, 1).denominator, 1);
    EXPECT_EQ(part_for(view, {ImageFormat::png, side, side, 1}, 8).denominator, 1);
  }
}

TEST(AugmentTest, AnAxisKeepsItsPlaceInAPart) {
  const Axis axis{.num_outputs = 10, .begin = 40, .scale = 4, .low = 40, .high = 80};
  const Axis inside = axis_in_part(axis, 16, 30, 2);
  EXPECT_DOUBLE_EQ(inside.begin, 4);
  EXPECT_DOUBLE_EQ(inside.scale, 2);
  EXPECT_EQ(inside.low, 4);
  EXPECT_EQ(inside.high, 24);
}

TEST(AugmentTest, ColourFactorsActAsTheirNamesSay) {
  std::vector<float> pixels{0.5f, 0.25f, 0.25f, 0.1f, 0.1f, 0.1f};
  change_colour(pixels.data(), 2, {.brightness = 2});
  EXPECT_FLOAT_EQ(pixels[0], 1.0f);
  EXPECT_FLOAT_EQ(pixels[3], 0.2f);
  change_colour(pixels.data(), 2, {.saturation = 0});
  EXPECT_FLOAT_EQ(pixels[0], pixels[1]);
  const float mean = (pixels[0] + pixels[3]) / 2;
  change_colour(pixels.data(), 2, {.contrast = 0});
  for (const float value : pixels) EXPECT_NEAR(value, mean, 1e-6);
}

}  // namespace
}  // namespace lockstep::image
