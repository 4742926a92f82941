// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/save_clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::run {
namespace {

constexpr double kHour = 3600;

TEST(SaveClockTest, FollowsYoungsRule) {
  EXPECT_NEAR(young_interval({.stall = 0.5}, 8 * kHour), 169.7, 0.1);  // sqrt(2 * 0.5 * 28800)
  EXPECT_NEAR(young_interval({.stall = 0.1, .processor = 0.4, .durable = 3}, 8 * kHour), 169.7, 0.1);
}

TEST(SaveClockTest, AFailureEveryEightHoursCostsOnePercentAtMost) {
  for (const double stall : {0.001, 0.1, 1.0, 5.0}) {
    for (const double processor : {0.0, 1.0, 30.0}) {
      const double interval = young_interval({stall, processor, 10}, 8 * kHour);
      EXPECT_LE(interval / 2 / (8 * kHour), 0.01 + 1e-9) << stall << " " << processor;
      EXPECT_LE(stall / interval, 0.01 + 1e-9) << stall << " " << processor;
    }
  }
}

TEST(SaveClockTest, ASlowDiskIsNotGivenASecondSaveBeforeTheFirstIsDone) {
  EXPECT_EQ(young_interval({.stall = 0.01, .durable = 1000}, 8 * kHour), 2000);
  EXPECT_EQ(young_interval({.stall = 20}, 8 * kHour), 2000);  // stalls of 1 %
}

TEST(SaveClockTest, TheFirstSaveComesAfterAMinute) {
  const SaveClock clock(8 * kHour, 100);
  EXPECT_FALSE(clock.look(10, 150, 0.5).save);
  EXPECT_TRUE(clock.look(10, 160, 0.5).save);
}

// Runs the loop that the ranks run; returns the times of the saves.
std::vector<double> saves_of(double step_seconds, double until) {
  SaveClock clock(8 * kHour, 0);
  std::vector<double> saves;
  int64_t next = 1;
  for (int64_t step = 1; static_cast<double>(step) * step_seconds < until; ++step) {
    if (step != next) continue;
    const double now = static_cast<double>(step) * step_seconds;
    const auto look = clock.look(step, now, step_seconds);
    EXPECT_GT(look.next_step, step);
    next = look.next_step;
    if (!look.save) continue;
    clock.began(now);
    clock.measured({.stall = 0.5});
    saves.push_back(now);
  }
  return saves;
}

TEST(SaveClockTest, ItsLooksMissTheTimeByASixteenthAtMost) {
  for (const double step_seconds : {0.01, 1.0, 7.0}) {
    const auto saves = saves_of(step_seconds, 2000);
    ASSERT_GE(saves.size(), 11U);
    EXPECT_NEAR(saves[0], 60, step_seconds);
    for (size_t i = 1; i < saves.size(); ++i) EXPECT_NEAR(saves[i] - saves[i - 1], 169.7, 169.7 / 16 + step_seconds);
  }
}

}  // namespace
}  // namespace lockstep::run
