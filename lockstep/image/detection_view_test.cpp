// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/detection_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::image {
namespace {

// The right half of an image of 100 x 60, from row 10 to 50, as 100 x 80: twice as large.
View half_view(bool mirrored) {
  View view;
  view.x = {.num_outputs = 100, .begin = 50, .scale = 0.5, .low = 50, .high = 100, .reversed = mirrored};
  view.y = {.num_outputs = 80, .begin = 10, .scale = 0.5, .low = 10, .high = 50};
  return view;
}

double area_of(const Polygon& polygon) {
  double sum = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Corner& a = polygon[i];
    const Corner& b = polygon[(i + 1) % polygon.size()];
    sum += a.x * b.y - b.x * a.y;
  }
  return std::abs(sum) / 2;
}

TEST(DetectionViewTest, BoxesFollowCropResizeAndMirror) {
  EXPECT_EQ(show_box(half_view(false), {60, 20, 70, 30}), (Box{20, 20, 40, 40}));
  EXPECT_EQ(show_box(half_view(true), {60, 20, 70, 30}), (Box{60, 20, 80, 40}));
  EXPECT_EQ(show_box(half_view(false), {40, 0, 60, 20}), (Box{0, 0, 20, 20})) << "clipped";
}

TEST(DetectionViewTest, BoxesThatAreHardlyVisibleAreDropped) {
  const std::vector<Box> boxes{{60, 20, 70, 30}, {45, 20, 55, 30}, {41, 20, 51, 30}, {0, 0, 30, 30}};
  const auto shown = show_boxes(half_view(false), boxes, 0.3);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0], (ShownBox{0, {20, 20, 40, 40}, 1}));
  EXPECT_EQ(shown[1].index, 1u);
  EXPECT_DOUBLE_EQ(shown[1].visible, 0.5);
  EXPECT_EQ(show_boxes(half_view(false), boxes, 0).size(), 3u) << "what is not seen at all is dropped always";
}

TEST(DetectionViewTest, APolygonIsClippedAsItsAreaSays) {
  const Polygon triangle{{40, 20}, {80, 20}, {60, 40}};  // of area 400; a corner of area 50 is left of column 50
  EXPECT_NEAR(area_of(show_polygon(half_view(false), triangle)), 4 * 350, 1e-9);
  EXPECT_NEAR(area_of(show_polygon(half_view(true), triangle)), 4 * 350, 1e-9);
  EXPECT_TRUE(show_polygon(half_view(false), {{0, 0}, {20, 0}, {10, 10}}).empty());
  const Polygon square{{60, 20}, {70, 20}, {70, 30}, {60, 30}};
  EXPECT_EQ(show_polygon(half_view(false), square), (Polygon{{20, 20}, {40, 20}, {40, 40}, {20, 40}}));
}

TEST(DetectionViewTest, AMaskCoversWhatItsBoxCovers) {
  Bitmap mask{100, 60, std::vector<uint8_t>(6000)};
  for (int64_t y = 20; y < 30; ++y) {
    for (int64_t x = 60; x < 70; ++x) mask.pixels[static_cast<size_t>(y * 100 + x)] = 1;
  }
  for (const bool mirrored : {false, true}) {
    const Box box = show_box(half_view(mirrored), {60, 20, 70, 30});
    const Bitmap shown = show_mask(half_view(mirrored), mask);
    ASSERT_EQ(shown.pixels.size(), 8000u);
    for (int64_t y = 0; y < 80; ++y) {
      for (int64_t x = 0; x < 100; ++x) {
        const double cx = static_cast<double>(x) + 0.5, cy = static_cast<double>(y) + 0.5;
        const bool inside = cx > box.left && cx < box.right && cy > box.top && cy < box.bottom;
        ASSERT_EQ(shown.pixels[static_cast<size_t>(y * 100 + x)], inside) << x << " " << y;
      }
    }
  }
}

TEST(DetectionViewTest, IsAFunctionOfItsRandomNumbersAndKeepsABoxInSight) {
  const std::vector<Box> boxes{{5, 5, 15, 15}};
  const DetectionView how{.width = 64, .height = 48, .brightness = 0.4, .hue = 0.1};
  int mirrored = 0, different = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const View view = detection_view(200, 150, boxes, how, base::Random(7, 3, sample));
    EXPECT_EQ(view, detection_view(200, 150, boxes, how, base::Random(7, 3, sample)));
    different += view != detection_view(200, 150, boxes, how, base::Random(7, 4, sample));
    mirrored += view.x.reversed;
    EXPECT_FALSE(show_boxes(view, boxes, how.min_visible).empty());
    EXPECT_GE(view.x.scale * 64 * view.y.scale * 48, 0.29 * 200 * 150);
    EXPECT_LE(std::abs(view.colour.hue), 0.1f);
  }
  EXPECT_GT(different, 190);
  EXPECT_NEAR(mirrored, 100, 30);
}

}  // namespace
}  // namespace lockstep::image
