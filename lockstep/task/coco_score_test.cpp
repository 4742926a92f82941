// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/coco_score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::task {
namespace {

// tests/oracles/coco_scores.py holds it against pycocotools on large sets; the numbers here are pycocotools' too.
CocoTruth truth(std::array<double, 4> box, bool is_crowd = false, int64_t label = 0) {
  return {label, box, box[2] * box[3], is_crowd};
}

CocoDetection found(std::array<double, 4> box, double score, int64_t label = 0) {
  return {label, box, score, box[2] * box[3]};
}

CocoFigures score_of(const CocoImage& image, int64_t classes = 1) {
  CocoScore score(classes, CocoIou::bbox);
  score.add(image);
  return score.figures();
}

void expect_near(const CocoFigures& figures, const std::array<double, 12>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(figures.*kCocoFigures[i].value, expected[i], 1e-6) << kCocoFigures[i].name;
}

TEST(CocoScoreTest, GivesTheTwelveFiguresOfPycocotools) {
  const CocoFigures figures =
      score_of({1,
                0,
                {truth({10, 10, 40, 40}), truth({60, 10, 20, 20}), truth({100, 0, 100, 100}, true)},
                {found({12, 10, 40, 40}, 0.9), found({10, 10, 40, 40}, 0.8), found({62, 12, 20, 20}, 0.7),
                 found({110, 10, 30, 30}, 0.6), found({150, 50, 30, 30}, 0.5), found({300, 300, 10, 10}, 0.4)}});
  expect_near(figures, {0.611716, 0.834983, 0.504950, 0.4, 0.95, -1, 0.45, 0.7, 0.7, 0.4, 1, -1});
  ASSERT_EQ(figures.classes.size(), 1U);
  EXPECT_EQ(figures.classes[0], (CocoClass{2, figures.ap, figures.ap50, figures.ap75}));
}

TEST(CocoScoreTest, HalfOfTheObjectsFoundIsHalfOfTheRecall) {
  const CocoFigures figures =
      score_of({1, 0, {truth({10, 10, 40, 40}), truth({100, 100, 40, 40})}, {found({10, 10, 40, 40}, 0.9)}});
  EXPECT_NEAR(figures.ap, 51.0 / 101, 1e-12);  // precision 1 at recalls 0, .01, ..., .5
  EXPECT_DOUBLE_EQ(figures.ar100, 0.5);
}

TEST(CocoScoreTest, AnAreaAtTheLimitIsInBothRanges) {
  const CocoFigures figures = score_of({1, 0, {truth({0, 0, 32, 32})}, {found({0, 0, 32, 32}, 0.9)}});
  EXPECT_DOUBLE_EQ(figures.ap_small, 1);
  EXPECT_DOUBLE_EQ(figures.ap_medium, 1);
  EXPECT_DOUBLE_EQ(figures.ap_large, -1);
}

TEST(CocoScoreTest, AHundredDetectionsOfAClassCount) {
  CocoImage image{1, 0, {truth({0, 0, 50, 50})}, {}};
  for (int i = 0; i < 100; ++i) image.detections.push_back(found({500, 500, 50, 50}, 0.9));
  image.detections.push_back(found({0, 0, 50, 50}, 0.8));
  EXPECT_DOUBLE_EQ(score_of(image).ar100, 0);
  image.detections.erase(image.detections.begin());
  EXPECT_DOUBLE_EQ(score_of(image).ar100, 1);
  EXPECT_DOUBLE_EQ(score_of(image).ar10, 0);
}

TEST(CocoScoreTest, MasksOverlapByTheirPixels) {
  // 4 x 4: the left half, its first column, and a crowd all over.
  const std::vector<int64_t> half{0, 8, 8}, column{0, 4, 12}, all{0, 16};
  CocoScore score(2, CocoIou::segm);
  score.add({1, 4, {{0, {}, 8, false, half}}, {{0, {}, 0.9, 4, column}, {0, {}, 0.8, 8, half}}});
  score.add(
      {2, 4, {{1, {}, 16, true, all}, {1, {}, 4, false, column}}, {{1, {}, 0.9, 8, half}, {1, {}, 0.8, 4, column}}});
  const CocoFigures figures = score.figures();
  EXPECT_NEAR(figures.classes[0].ap50, 1, 1e-12);    // the column is half of the half: .5 is enough
  EXPECT_NEAR(figures.classes[0].ap75, 0.5, 1e-12);  // and here a false one before the right one
  EXPECT_NEAR(figures.classes[1].ap75, 1, 1e-12);    // what lies in a crowd is not false
  EXPECT_EQ(figures.classes[1].truths, 1);
}

CocoImage random_image(int64_t id) {
  base::Random random(5, 0, static_cast<uint64_t>(id));
  CocoImage image{id};
  const auto box = [&]() -> std::array<double, 4> {
    return {std::floor(random.uniform(0, 200)), std::floor(random.uniform(0, 200)), random.uniform(5, 120),
            random.uniform(5, 120)};
  };
  for (int64_t i = random.below(12); i > 0; --i)
    image.truths.push_back(truth(box(), random.chance(0.1), random.below(3)));
  for (int64_t i = random.below(60); i > 0; --i) {
    auto where = box();
    if (!image.truths.empty() && random.chance(0.6)) {
      where = image.truths[static_cast<size_t>(random.below(static_cast<int64_t>(image.truths.size())))].box;
      where[2] *= random.uniform(0.6, 1.2);
    }
    image.detections.push_back(found(where, std::floor(random.uniform(0, 20)) / 20, random.below(3)));  // many ties
  }
  return image;
}

TEST(CocoScoreTest, AnyOrderOnAnyRanksGivesTheSameBits) {
  CocoScore one(3, CocoIou::bbox);
  for (int64_t id = 0; id < 60; ++id) one.add(random_image(id));
  CocoScore first(3, CocoIou::bbox), second(3, CocoIou::bbox), third(3, CocoIou::bbox);
  for (int64_t id = 59; id >= 0; --id) (id % 3 == 0 ? first : second).add(random_image(id));
  third.merge(second.pack());
  third.merge(CocoScore(3, CocoIou::bbox).pack());  // a rank without an image
  third.merge(first.pack());
  EXPECT_EQ(third.images(), 60);
  EXPECT_EQ(third.figures(), one.figures());
  EXPECT_GT(one.figures().ap, 0);
  EXPECT_LT(one.figures().ap, 1);
  EXPECT_THROW(third.merge("short"), base::Error);
}

TEST(CocoScoreTest, WhatIsNoNumberIsLeftOutAndCounted) {
  const double nan = std::nan("");
  CocoScore score(1, CocoIou::bbox);
  score.add({1,
             0,
             {truth({0, 0, 50, 50})},
             {found({0, 0, 50, 50}, nan), found({nan, 0, 50, 50}, 0.9), found({0, 0, 50, 50}, 0.5)}});
  EXPECT_EQ(score.nonfinite(), 2);
  EXPECT_DOUBLE_EQ(score.figures().ap, 1);
}

TEST(CocoScoreTest, WithoutAnythingToFindThereIsNoFigure) {
  const CocoScore score(2, CocoIou::bbox);
  EXPECT_DOUBLE_EQ(score.figures().ap, -1);
  EXPECT_EQ(score.figures().classes, (std::vector<CocoClass>(2)));
  EXPECT_DOUBLE_EQ(score_of({1, 0, {}, {found({0, 0, 5, 5}, 0.5)}}).ap, -1);  // false ones alone
  EXPECT_DOUBLE_EQ(score_of({1, 0, {truth({0, 0, 5, 5})}, {}}).ap, 0);
}

TEST(CocoScoreTest, ALabelBeyondTheClassesIsABug) {
  CocoScore score(2, CocoIou::bbox);
  EXPECT_THROW(score.add({1, 0, {truth({0, 0, 5, 5}, false, 2)}, {}}), base::Error);
}

}  // namespace
}  // namespace lockstep::task
