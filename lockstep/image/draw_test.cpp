// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <tuple>

namespace lockstep::image {
namespace {

constexpr Color kRed{255, 0, 0};

bool has(const Image& image, int64_t x, int64_t y, Color color) {
  const uint8_t* pixel = image.row(y) + 3 * x;
  return pixel[0] == color.red && pixel[1] == color.green && pixel[2] == color.blue;
}

int64_t count(const Image& image, Color color) {
  int64_t pixels = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) pixels += has(image, x, y, color) ? 1 : 0;
  }
  return pixels;
}

TEST(DrawTest, ABoxIsAFrameWithinIt) {
  Image image(10, 8);
  draw_box(image, {2, 1, 8, 6}, kRed, 1);
  EXPECT_EQ(count(image, kRed), 2 * 6 + 2 * 3);
  EXPECT_TRUE(has(image, 2, 1, kRed));
  EXPECT_TRUE(has(image, 7, 5, kRed));
  EXPECT_FALSE(has(image, 3, 2, kRed));
  EXPECT_FALSE(has(image, 8, 6, kRed));
}

TEST(DrawTest, WhatLiesOutsideIsCutOff) {
  Image image(4, 4);
  const double infinite = std::numeric_limits<double>::infinity();
  draw_box(image, {-infinite, std::nan(""), 1e300, 2}, kRed, 1);
  EXPECT_TRUE(has(image, 0, 0, kRed));
  EXPECT_TRUE(has(image, 3, 1, kRed));
  draw_object(image, {{-50, -50, -40, -40}, "far", kRed});
  draw_text(image, "wide as a river", -3, -3, kRed, 2);
  draw_label(image, "wide as a river", 3, 3, kRed, 2);
  EXPECT_TRUE(has(image, 0, 0, kRed));  // the paper
  Image none(0, 0);
  draw_object(none, {{0, 0, 1, 1}, "a", kRed});
}

TEST(DrawTest, ALetterHasItsPoints) {
  Image image(12, 7);
  draw_text(image, "T ", 0, 0, kRed, 1);
  EXPECT_EQ(text_width("T ", 2), 24);
  EXPECT_EQ(count(image, kRed), 5 + 6 + 2);  // the bar, the stem below it, its two ends
  EXPECT_TRUE(has(image, 2, 6, kRed));
  EXPECT_FALSE(has(image, 1, 6, kRed));
}

TEST(DrawTest, AccentsAreLeftOutAndUnknownLettersAreFrames) {
  const auto drawn = [](std::string_view text) {
    Image image(40, 7);
    draw_text(image, text, 0, 0, kRed, 1);
    return image;
  };
  EXPECT_EQ(drawn("J\xC3\xA9sus"), drawn("Jesus"));
  EXPECT_EQ(text_width("\xE8\x81\x96", 1), 6);
  EXPECT_EQ(count(drawn("\xE8\x81\x96"), kRed), 2 * 7 + 2 * 3);
  EXPECT_EQ(text_width("a\x80\xFF", 1), 12);  // damaged text is no reason to stop
}

TEST(DrawTest, EveryPrintableLetterDiffers) {
  std::set<std::vector<uint8_t>> seen;
  for (char c = ' '; c < 0x7F; ++c) {
    Image image(6, 7);
    draw_text(image, std::string(1, c), 0, 0, kRed, 1);
    seen.insert(image.pixels);
  }
  EXPECT_EQ(seen.size(), 95U);
}

TEST(DrawTest, AMaskOfAnyResolutionIsMixedIn) {
  Image image(4, 2);
  Mask mask(2, 1);
  mask.inside = {0, 1};
  blend_mask(image, mask, kRed, 0.5);
  EXPECT_EQ(count(image, {0, 0, 0}), 4);
  EXPECT_EQ(count(image, {128, 0, 0}), 4);
  EXPECT_TRUE(has(image, 2, 0, {128, 0, 0}));
}

TEST(DrawTest, AnObjectHasItsWordsAboveItWhereThereIsRoom) {
  Image image(60, 60);
  draw_object(image, {{10, 30, 50, 50}, "dog", kRed});
  EXPECT_TRUE(has(image, 10, 30 - 9, kRed));  // the paper above the box
  Image high(60, 60);
  draw_object(high, {{10, 2, 50, 50}, "dog", kRed});
  EXPECT_TRUE(has(high, 12, 3, kRed));
  EXPECT_FALSE(has(high, 10, 1, kRed));
}

TEST(DrawTest, ClassesHaveColoursOfTheirOwn) {
  std::set<std::tuple<int, int, int>> seen;
  for (int64_t label = 0; label < 20; ++label) {
    const Color color = class_color(label);
    seen.insert({color.red, color.green, color.blue});
  }
  EXPECT_EQ(seen.size(), 20U);
  EXPECT_EQ(class_color(20), class_color(0));
  EXPECT_EQ(class_color(-1), class_color(19));
  EXPECT_EQ(ink_on({255, 255, 0}), (Color{0, 0, 0}));
  EXPECT_EQ(ink_on({0, 0, 128}), (Color{255, 255, 255}));
}

}  // namespace
}  // namespace lockstep::image
