// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/outline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace lockstep::image {
namespace {

Mask drawn(const std::vector<std::string>& rows) {
  Mask mask(static_cast<int64_t>(rows[0].size()), static_cast<int64_t>(rows.size()));
  for (size_t i = 0; i < mask.inside.size(); ++i) mask.inside[i] = rows[i / rows[0].size()][i % rows[0].size()] == '#';
  return mask;
}

// By the even-odd rule, at the middle of each pixel.
Mask filled(const std::vector<Polygon>& outlines, int64_t width, int64_t height) {
  Mask mask(width, height);
  for (int64_t i = 0; i < width * height; ++i) {
    const double x = static_cast<double>(i % width) + 0.5, y = static_cast<double>(i / width) + 0.5;
    bool inside = false;
    for (const auto& outline : outlines) {
      for (size_t k = 0; k < outline.size(); ++k) {
        const Corner &a = outline[k], &b = outline[(k + 1) % outline.size()];
        if ((a.y > y) != (b.y > y) && x < a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x)) inside = !inside;
      }
    }
    mask.inside[static_cast<size_t>(i)] = inside;
  }
  return mask;
}

TEST(OutlineTest, ARectangleHasFourCorners) {
  const auto outlines = trace_outlines(drawn({"....", ".##.", ".##.", "...."}));
  ASSERT_EQ(outlines.size(), 1U);
  EXPECT_EQ(outlines[0], (Polygon{{1, 1}, {3, 1}, {3, 3}, {1, 3}}));
}

TEST(OutlineTest, HolesAndPixelsThatMeetAtACornerAreOutlinesOfTheirOwn) {
  EXPECT_EQ(trace_outlines(drawn({"###", "#.#", "###"})).size(), 2U);
  EXPECT_EQ(trace_outlines(drawn({"#.", ".#"})).size(), 2U);
  EXPECT_TRUE(trace_outlines(Mask(3, 3)).empty());
}

TEST(OutlineTest, FilledAgainItIsTheMask) {
  std::mt19937 numbers(7);
  for (int round = 0; round < 50; ++round) {
    Mask mask(13, 9);
    for (auto& pixel : mask.inside) pixel = numbers() % 3 != 0;
    EXPECT_EQ(filled(trace_outlines(mask), 13, 9), mask);
  }
}

TEST(OutlineTest, SimplifyingStraysByTheToleranceAtMost) {
  Mask disk(64, 64);
  for (int64_t i = 0; i < 64 * 64; ++i) {
    disk.inside[static_cast<size_t>(i)] =
        std::hypot(static_cast<double>(i % 64) - 31.5, static_cast<double>(i / 64) - 31.5) < 25;
  }
  const Polygon outline = trace_outlines(disk).at(0);
  const Polygon simple = simplify_outline(outline, 1);
  EXPECT_LT(simple.size() * 3, outline.size());
  const Mask again = filled({simple}, 64, 64);
  int64_t differ = 0;
  for (size_t i = 0; i < disk.inside.size(); ++i) differ += disk.inside[i] != again.inside[i] ? 1 : 0;
  EXPECT_LT(differ, disk.area() / 20);
  const Polygon square{{0, 0}, {1, 0}, {1, 1}, {0, 1}};
  EXPECT_EQ(simplify_outline(square, 5), square);  // rather than nothing
}

}  // namespace
}  // namespace lockstep::image
