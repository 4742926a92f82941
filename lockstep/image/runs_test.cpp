// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/image/mask.h"

namespace lockstep::image {
namespace {

using testing::ElementsAre;

Runs read(const char* words, int64_t width, int64_t height) {
  return read_segmentation(base::parse_json(words, "test"), width, height);
}

Mask random_mask(int64_t width, int64_t height, uint64_t seed) {
  Mask mask(width, height);
  base::Random random(seed, 0);
  uint8_t now = 0;
  for (auto& pixel : mask.inside) pixel = now = random.uniform() < 0.3 ? 1 - now : now;
  return mask;
}

Runs runs_by_pixels(const Mask& a, const Mask& b, bool both) {
  Mask all = a;
  for (size_t i = 0; i < all.inside.size(); ++i)
    all.inside[i] = both ? a.inside[i] & b.inside[i] : a.inside[i] | b.inside[i];
  return encode_runs(all);
}

TEST(RunsTest, AreSpeltAsPycocotoolsSpellsThem) {
  Mask mask(5, 4);
  for (const int64_t y : {1, 2})
    for (const int64_t x : {1, 2, 3}) mask.inside[static_cast<size_t>(y * 5 + x)] = 1;
  EXPECT_EQ(compress_runs(encode_runs(mask)), "5220003");
  EXPECT_THAT(read(R"({"size": [4, 5], "counts": "5220003"})", 5, 4), ElementsAre(5, 2, 2, 2, 2, 2, 5));
  EXPECT_EQ(compress_runs(Runs{0, 9}), "09");
  EXPECT_EQ(compress_runs(Runs{9}), "9");
}

TEST(RunsTest, APolygonIsThePixelsThatPycocotoolsTakes) {
  const Runs triangle = read("[[1.5, 1.2, 6.3, 2, 5, 6.7]]", 8, 8);
  EXPECT_THAT(triangle, ElementsAre(17, 2, 7, 2, 6, 4, 4, 3, 19));
  EXPECT_EQ(compress_runs(triangle), "a0270O2NO?");
  EXPECT_EQ(runs_area(triangle), 11);
  EXPECT_THAT(runs_box(triangle, 8), ElementsAre(2, 1, 4, 5));
}

TEST(RunsTest, PartsOfAnObjectAreJoined) {
  const char* parts = "[[0, 0, 2, 0, 2, 2, 0, 2], [1, 1, 3, 1, 3, 3, 1, 3], [7, 7, 8, 7, 8, 8, 7, 8]]";
  EXPECT_EQ(read(parts, 8, 8), encode_runs(rasterize_mask(base::parse_json(parts, "test"), 8, 8)));
  EXPECT_EQ(runs_area(read(parts, 8, 8)), 4 + 4 - 1 + 1);
  EXPECT_THAT(read("[]", 3, 2), ElementsAre(6));
}

TEST(RunsTest, UnionIntersectionAndOverlapAreThoseOfThePixels) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const int64_t width = 1 + static_cast<int64_t>(seed % 13), height = 1 + static_cast<int64_t>(seed % 7);
    const Mask a = random_mask(width, height, seed), b = random_mask(width, height, seed + 100);
    const Runs runs_a = encode_runs(a), runs_b = encode_runs(b);
    EXPECT_EQ(unite_runs(runs_a, runs_b), runs_by_pixels(a, b, false));
    EXPECT_EQ(intersect_runs(runs_a, runs_b), runs_by_pixels(a, b, true));
    EXPECT_EQ(runs_area(runs_a), a.area());
    const int64_t common = runs_area(runs_by_pixels(a, b, true)), all = runs_area(runs_by_pixels(a, b, false));
    EXPECT_EQ(intersection_area(runs_a, runs_b), common);
    EXPECT_DOUBLE_EQ(runs_overlap(runs_a, runs_b, false),
                     common == 0 ? 0 : static_cast<double>(common) / static_cast<double>(all));
    EXPECT_DOUBLE_EQ(runs_overlap(runs_a, runs_b, true),
                     common == 0 ? 0 : static_cast<double>(common) / static_cast<double>(a.area()));
  }
}

TEST(RunsTest, TheBoxIsTheSmallestAroundTheInside) {
  EXPECT_THAT(runs_box(Runs{6}, 2), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(runs_box(Runs{0, 6}, 2), ElementsAre(0, 0, 3, 2));
  EXPECT_THAT(runs_box(Runs{5, 1}, 3), ElementsAre(1, 2, 1, 1));
  EXPECT_THAT(runs_box(Runs{5, 2, 5}, 3), ElementsAre(1, 0, 2, 3));  // the last of a column and the first of the next
  EXPECT_THAT(runs_box(Runs{1, 0, 3, 1, 7}, 4), ElementsAre(1, 0, 1, 1));  // a run of no length is nowhere
}

TEST(RunsTest, EverySpellingIsReadCompressed) {
  for (const char* words : {R"({"size": [2, 3], "counts": "123"})", R"({"size": [2, 3], "counts": [1, 2, 3]})"})
    EXPECT_EQ(read_compressed(base::parse_json(words, "test"), 3, 2), "123");
  EXPECT_EQ(read_compressed(base::parse_json("[[0, 0, 2, 0, 2, 2, 0, 2]]", "test"), 3, 2), "042");
}

TEST(RunsTest, RunsOfNoLengthAreJoined) {
  EXPECT_THAT(unite_runs(Runs{1, 2, 0, 3}, Runs{6}), ElementsAre(1, 5));
  EXPECT_THAT(read(R"({"size": [2, 3], "counts": [1, 2, 0, 3]})", 3, 2), ElementsAre(1, 5));
}

TEST(RunsTest, WhatIsNoMaskOfTheImageIsAUserError) {
  for (const char* words : {R"({"size": [3, 2], "counts": "123"})", R"({"size": [2, 3], "counts": "124"})",
                            R"({"size": [2, 3], "counts": "12"})", "[[1, 1, 2, 2]]", "7"}) {
    EXPECT_THROW(read(words, 3, 2), base::Error) << words;
    EXPECT_THROW(read_compressed(base::parse_json(words, "test"), 3, 2), base::Error) << words;
  }
}

}  // namespace
}  // namespace lockstep::image
