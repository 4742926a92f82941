// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

// tests/oracles/captions.py holds random captions against pycocoevalcap.
TEST(CaptionMetricsTest, TheReferenceItselfIsPerfect) {
  const std::vector<CaptionPair> pairs{{{"a", "red", "cat", "sat"}, {{"a", "red", "cat", "sat"}}},
                                       {{"two", "dogs", "run", "fast"}, {{"two", "dogs", "run", "fast"}, {"dogs"}}}};
  const CaptionFigures figures = caption_figures(pairs);
  for (const double bleu : figures.bleu) EXPECT_NEAR(bleu, 1, 1e-8);
  EXPECT_NEAR(figures.rouge_l, 1, 1e-12);
  EXPECT_GT(figures.cider, 5);
  EXPECT_LE(figures.cider, 10);
}

TEST(CaptionMetricsTest, ShorterCaptionsPayForIt) {
  const CaptionFigures figures = caption_figures({{{"a", "cat"}, {{"a", "cat", "sat", "down"}}}});
  EXPECT_NEAR(figures.bleu[0], std::exp(1 - 4.0 / 2), 1e-8);
  EXPECT_EQ(figures.cider, 0);  // of one image every n-gram is in every image
}

TEST(CaptionMetricsTest, RougeTakesPrecisionAndRecallFromAnyReference) {
  const CaptionPair pair{{"a", "b", "c"}, {{"a", "b", "c", "d", "e", "f"}, {"c"}}};  // precision 1, recall 1
  EXPECT_NEAR(rouge_l(pair), 1, 1e-12);
  EXPECT_EQ(rouge_l({{}, {{"a"}}}), 0);
  EXPECT_EQ(rouge_l({{"x"}, {{"a"}}}), 0);
}

TEST(CaptionMetricsTest, NothingIsWorthNothing) {
  const CaptionFigures figures = caption_figures({{{"x", "y"}, {{"a", "b"}}}, {{}, {{"c"}}}});
  EXPECT_LT(figures.bleu[0], 1e-8);
  EXPECT_EQ(figures.rouge_l, 0);
  EXPECT_EQ(figures.cider, 0);
}

}  // namespace
}  // namespace lockstep::task
