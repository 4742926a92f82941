// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/kitti_score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::task {
namespace {

// tests/oracles/kitti_scores.py holds all of it against a second implementation; here is what a rank does with it.
KittiImage worked_image(int64_t k) {
  const double e = static_cast<double>(k) / 1000;
  return {k,
          {{KittiType::car, {100, 100, 200, 160}},
           {KittiType::car, {300, 100, 360, 130}, 0.2, 1},
           {KittiType::van, {500, 100, 600, 160}},
           {KittiType::dont_care, {700, 100, 900, 200}, -1, -1}},
          {{KittiType::car, {105, 100, 200, 160}, 0.90 - e},
           {KittiType::car, {300, 100, 360, 128}, 0.80 - e},
           {KittiType::car, {500, 100, 600, 160}, 0.95 - e},
           {KittiType::car, {720, 110, 780, 160}, 0.85 - e},
           {KittiType::car, {1000, 100, 1060, 160}, 0.8805 - e},
           {KittiType::car, {1100, 100, 1130, 120}, 0.99 - e}}};
}

TEST(KittiScoreTest, GivesWhatKittisOwnProgramGives) {
  KittiScore score;
  for (int64_t k = 0; k < 50; ++k) score.add(worked_image(k));
  const KittiClass car = score.figures()[0];
  EXPECT_EQ(car.name, "Car");
  EXPECT_TRUE(car.is_detected);
  EXPECT_EQ(car.levels[0].truths, 50);
  EXPECT_EQ(car.levels[1].truths, 100);
  EXPECT_NEAR(car.levels[0].ap11, 0.837987, 1e-6);
  EXPECT_NEAR(car.levels[0].ap40, 0.833331, 1e-6);
  EXPECT_NEAR(car.levels[0].mean41, 0.837396, 1e-6);
  for (const size_t level : {1, 2}) {
    EXPECT_NEAR(car.levels[level].ap11, 0.765152, 1e-6);
    EXPECT_NEAR(car.levels[level].ap40, 0.751666, 1e-6);
    EXPECT_NEAR(car.levels[level].mean41, 0.757723, 1e-6);
  }
  const KittiClass kittibox = score.figures(KittiRule::kittibox)[0];
  EXPECT_NEAR(kittibox.levels[0].mean41, 0.384615, 1e-6);
  EXPECT_NEAR(kittibox.levels[1].mean41, 0.5, 1e-6);
}

TEST(KittiScoreTest, AnyOrderOnAnyRanksGivesTheSameBits) {
  KittiScore one;
  for (int64_t k = 0; k < 50; ++k) one.add(worked_image(k));
  KittiScore first, second, third;
  for (int64_t k = 49; k >= 0; --k) (k % 3 == 0 ? first : second).add(worked_image(k));
  third.merge(second.pack());
  third.merge(KittiScore().pack());  // a rank without an image
  third.merge(first.pack());
  EXPECT_EQ(third.images(), 50);
  EXPECT_EQ(third.figures(), one.figures());
  EXPECT_EQ(third.figures(KittiRule::kittibox), one.figures(KittiRule::kittibox));
}

TEST(KittiScoreTest, AClassThatNobodyDetectsSaysSo) {
  KittiScore score;
  score.add({1, {{KittiType::cyclist, {0, 0, 50, 50}}}, {{KittiType::car, {0, 0, 50, 50}, 0.5}}});
  EXPECT_TRUE(score.figures()[0].is_detected);
  EXPECT_FALSE(score.figures()[2].is_detected);
  EXPECT_EQ(score.figures()[2].levels[0], (KittiLevel{.truths = 1}));
}

TEST(KittiScoreTest, WhatIsNoNumberIsLeftOutAndCounted) {
  KittiScore score;
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  score.add({1,
             {{KittiType::car, {0, 0, 50, 50}}},
             {{KittiType::car, {0, 0, 50, 50}, nan},
              {KittiType::car, {0, 0, inf, 50}, 0.9},
              {KittiType::car, {0, 0, 50, 50}, 0.5}}});
  EXPECT_EQ(score.nonfinite(), 2);
  EXPECT_DOUBLE_EQ(score.figures()[0].levels[0].mean41, 1.0 / 41);
  KittiScore other;
  other.merge(score.pack());
  EXPECT_EQ(other.nonfinite(), 2);
}

TEST(KittiScoreTest, WithoutAnImageThereIsNothing) {
  EXPECT_EQ(KittiScore().images(), 0);
  EXPECT_EQ(KittiScore().figures()[1], (KittiClass{.name = "Pedestrian"}));
}

TEST(KittiScoreTest, NamesCompareWithoutCase) {
  EXPECT_EQ(kitti_type("CAR"), KittiType::car);
  EXPECT_EQ(kitti_type("person_Sitting"), KittiType::person_sitting);
  EXPECT_EQ(kitti_type("DontCare"), KittiType::dont_care);
  EXPECT_EQ(kitti_type("Truck"), KittiType::other);
  EXPECT_EQ(kitti_type("ca"), KittiType::other);
  EXPECT_EQ(kitti_type(""), KittiType::other);
}

}  // namespace
}  // namespace lockstep::task
