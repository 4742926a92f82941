// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::image {
namespace {

using testing::ElementsAre;

Mask from_json(const std::string& words, int64_t width, int64_t height) {
  return rasterize_mask(base::parse_json(words, "test"), width, height);
}

TEST(MaskTest, FillsASquareOfWholePixels) {
  const Mask mask = from_json("[[1, 1, 3, 1, 3, 3, 1, 3]]", 4, 4);
  EXPECT_THAT(mask.inside, ElementsAre(0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(mask.area(), 4);
}

TEST(MaskTest, JoinsPolygonsAndCutsThemAtTheEdge) {
  const Mask mask = from_json("[[-5, -5, 1, -5, 1, 1, -5, 1], [2, 1, 9, 1, 9, 9, 2, 9]]", 3, 2);
  EXPECT_THAT(mask.inside, ElementsAre(1, 0, 0, 0, 0, 1));
}

TEST(MaskTest, ReadsRunsDownTheColumnsPlainAndCompressed) {
  const Mask plain = from_json(R"({"size": [2, 3], "counts": [1, 2, 3]})", 3, 2);
  EXPECT_THAT(plain.inside, ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_EQ(from_json(R"({"size": [2, 3], "counts": "123"})", 3, 2), plain);
  EXPECT_THAT(parse_runs("123O"), ElementsAre(1, 2, 3, 1));  // 'O': minus one to the one before last
}

TEST(MaskTest, WritesTheRunsThatItReads) {
  for (const char* compressed : {"123", "123O", "06", "6"}) {
    const std::vector<int64_t> runs = parse_runs(compressed);
    EXPECT_EQ(compress_runs(runs), compressed);
  }
  const std::vector<int64_t> long_ones{0, 15, 16, 31, 32, 1023, 1024, 1, 1 << 25, 0, 7};
  EXPECT_EQ(parse_runs(compress_runs(long_ones)), long_ones);
  EXPECT_THAT(encode_runs(from_json(R"({"size": [2, 3], "counts": [1, 2, 3]})", 3, 2)), ElementsAre(1, 2, 3));
  EXPECT_THAT(encode_runs(from_json(R"({"size": [2, 3], "counts": [0, 6]})", 3, 2)), ElementsAre(0, 6));
}

TEST(MaskTest, RefusesWhatIsNoOutline) {
  for (const char* words :
       {"[[1, 2, 3, 4]]", "[[1, 2, 3, 4, 5]]", R"([["a", 1, 2, 3, 4, 5]])", "7", R"({"counts": "123"})",
        R"({"size": [3, 2], "counts": "123"})", R"({"size": [2, 3], "counts": [1, 2]})",
        R"({"size": [2, 3], "counts": [1, 2, 4]})", R"({"size": [2, 3], "counts": [-1, 2, 5]})",
        R"({"size": [2, 3], "counts": "PPPPPPPPPPPPPPPP"})", R"({"size": [2, 3], "counts": "o"})",
        "[[1e30, 0, 1, 1, 2, 2]]"}) {
    EXPECT_THROW(from_json(words, 3, 2), base::Error) << words;
  }
  EXPECT_THROW(from_json("[]", 1 << 20, 1 << 20), base::Error);
}

TEST(MaskTest, RefusesCornersThatAreAbsurdAndOutlinesWithoutEnd) {
  const auto complaint = [](const std::string& words) {
    try {
      from_json(words, 100, 50);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint("[[-300, -300, 400, -300, 400, 400]]"), "none");
  EXPECT_THAT(complaint("[[-16000000, 0, 16000000, 5, 0, 16000000]]"),
              testing::HasSubstr("corner of a polygon (-1.6e+07, 0) lies far outside of the image of 100 x 50"));
  std::string zigzag = "[[0, 0";
  for (int i = 0; i < 5000; ++i) zigzag += ", 800, 800, -800, -800";
  EXPECT_THAT(complaint(zigzag + "]]"), testing::HasSubstr("outline without end"));
  EXPECT_THROW(ObjectsImage(1 << 20, 1 << 20), base::Error);
}

TEST(MaskTest, ShowsTheSmallerObjectAndNumbersManyInTwoBytes) {
  const Mask all = from_json("[[0, 0, 2, 0, 2, 2, 0, 2]]", 2, 2), one = from_json("[[0, 0, 1, 0, 1, 1, 0, 1]]", 2, 2);
  const auto decoded = [](const std::string& file) {
    return decode_image(std::as_bytes(std::span(file.data(), file.size())));
  };
  ObjectsImage two(2, 2);
  two.add(&one);
  two.add(&all);
  const Image few = decoded(two.png());
  EXPECT_THAT(few.pixels, ElementsAre(1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2));
  ObjectsImage many(2, 2);
  for (int i = 0; i < 299; ++i) many.add(nullptr);
  many.add(&one);
  const Image numbered = decoded(many.png());
  EXPECT_THAT(numbered.pixels, ElementsAre(300 - 256, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace lockstep::image
