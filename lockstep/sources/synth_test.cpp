// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

TEST(SynthTest, NamesAreSortedAndSmallerSetsAreSubsets) {
  const auto all = shape_names(kMaxShapes);
  EXPECT_EQ(all.size(), 10u);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(shape_names(2), (std::vector<std::string>{"disk", "square"}));
  const auto some = shape_names(6);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), some.begin(), some.end()));
  EXPECT_THROW(shape_names(11), base::Error);
}

TEST(SynthTest, AnImageIsFixedBySeedAndIndex) {
  EXPECT_EQ(draw_shape("star", 64, 1, 5), draw_shape("star", 64, 1, 5));
  EXPECT_NE(draw_shape("star", 64, 1, 5), draw_shape("star", 64, 1, 6));
  EXPECT_NE(draw_shape("star", 64, 1, 5), draw_shape("star", 64, 2, 5));
  EXPECT_THROW(draw_shape("teapot", 64, 1, 0), base::Error);
}

// The same numbers draw the same background: what differs between two shapes is the shape, and it must be seen.
TEST(SynthTest, EveryShapeIsSeen) {
  for (const auto& name : shape_names(kMaxShapes)) {
    const image::Image other = draw_shape(name == "disk" ? "ring" : "disk", 64, 1, 3);
    const image::Image image = draw_shape(name, 64, 1, 3);
    int64_t differing = 0;
    for (size_t i = 0; i < image.pixels.size(); ++i) differing += std::abs(image.pixels[i] - other.pixels[i]) > 20;
    EXPECT_GT(differing, 64 * 64 * 3 / 50) << name;
  }
}

TEST(SynthTest, DrawsAnySize) {
  for (const int64_t size : {8, 33, 200}) {
    EXPECT_EQ(draw_shape("spiral", size, 1, 0).pixels.size(), static_cast<size_t>(size * size * 3));
  }
}

TEST(SynthTest, ScenesHaveBoxesAroundTheirShapes) {
  for (int64_t index = 0; index < 20; ++index) {
    const Scene scene = draw_scene(200, 60, 8, 3, index);
    EXPECT_EQ(scene.image.width, 200);
    EXPECT_EQ(scene.image.height, 60);
    ASSERT_GE(scene.objects.size(), 1u);
    double last_right = -1;
    for (const auto& object : scene.objects) {
      EXPECT_GE(object.x, last_right);  // apart, from left to right
      last_right = object.x + object.width;
      EXPECT_LE(last_right, 200);
      EXPECT_LE(object.y + object.height, 60);
      EXPECT_GT(object.width, 6);
      EXPECT_EQ(object.outline.size(), 48u);
    }
    EXPECT_EQ(draw_scene(200, 60, 8, 3, index).image, scene.image);
  }
  EXPECT_NE(draw_scene(64, 64, 3, 3, 0).image, draw_scene(64, 64, 3, 4, 0).image);
}

}  // namespace
}  // namespace lockstep::sources
