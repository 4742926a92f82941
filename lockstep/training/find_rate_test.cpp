// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/find_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lockstep/training/small_training.h"

namespace lockstep::training {
namespace {

TEST(FindRateTest, SuggestsWhereTheLossFallsFastest) {
  std::vector<RatePoint> points;
  for (int i = 0; i < 40; ++i) {
    const double loss = 2 - std::tanh((i - 20) / 4.0) + (i > 32 ? 5 : 0);  // steepest at 20, up from 33 on
    points.push_back({std::pow(10, i / 10.0 - 6), loss, loss});
  }
  EXPECT_NEAR(std::log10(suggest_rate(points)), -4, 0.11);
  for (auto& point : points) point.smooth = 1;
  EXPECT_EQ(suggest_rate(points), 0);
}

TEST(FindRateTest, TakesTheJobsStepsAndLeavesNoRunFolder) {
  SmallTraining small;
  const auto group = comm::single_group();
  const RateSweep sweep = find_rate(small.job, {.steps = 30, .lowest = 1e-5, .highest = 100}, *group);
  ASSERT_GE(sweep.points.size(), 10U);
  EXPECT_DOUBLE_EQ(sweep.points[0].rate, 1e-5);
  EXPECT_GT(sweep.points[1].rate, sweep.points[0].rate);
  EXPECT_FALSE(std::filesystem::exists(small.options.run));
  const RateSweep again = find_rate(small.job, {.steps = 30, .lowest = 1e-5, .highest = 100}, *group);
  EXPECT_EQ(again.to_json(), sweep.to_json());
}

// The rate that is found is that of the phase, the key is the one that lr_scale multiplies.
TEST(FindRateTest, OfAJobWithPhasesTheLastIsTriedAndItsScaleIsAccountedFor) {
  SmallTraining small;
  const auto group = comm::single_group();
  small.job.training.epochs = 0;
  small.job.training.phases = {{.epochs = 1, .train_from = "head"}, {.epochs = 1, .train_from = ""}};
  const RateSweep plain = find_rate(small.job, {.steps = 20}, *group);
  EXPECT_THAT(plain.phase, testing::HasSubstr("phase 2, the whole network"));
  small.job.training.phases[1].lr_scale = 0.5;
  EXPECT_DOUBLE_EQ(find_rate(small.job, {.steps = 20}, *group).suggested, 2 * plain.suggested);
}

}  // namespace
}  // namespace lockstep::training
