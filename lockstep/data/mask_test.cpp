// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/decode.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

Mask from_json(const std::string& words, int64_t width, int64_t height) {
  return mask_of(base::parse_json(words, "test"), width, height);
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

TEST(MaskTest, ShowsTheSmallerObjectAndNumbersManyInTwoBytes) {
  const Mask all = from_json("[[0, 0, 2, 0, 2, 2, 0, 2]]", 2, 2), one = from_json("[[0, 0, 1, 0, 1, 1, 0, 1]]", 2, 2);
  const auto decoded = [](const std::string& file) {
    return decode_image(std::as_bytes(std::span(file.data(), file.size())));
  };
  const Image few = decoded(objects_png({one, all}, 2, 2));
  EXPECT_THAT(few.pixels, ElementsAre(1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2));
  std::vector<Mask> many(299, Mask(2, 2));
  many.push_back(one);
  const Image numbered = decoded(objects_png(many, 2, 2));
  EXPECT_THAT(numbered.pixels, ElementsAre(300 - 256, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace lockstep::data
