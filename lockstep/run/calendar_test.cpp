// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/calendar.h"

#include <gtest/gtest.h>

namespace lockstep::run {
namespace {

TEST(CalendarTest, EpochsAreRoundedToTheNearestStepAndNeverToNone) {
  EXPECT_EQ(steps_of(0.3, 8), 2);
  EXPECT_EQ(steps_of(0.01, 8), 1);
  EXPECT_EQ(steps_of(2.5, 3), 8);
}

TEST(CalendarTest, EvaluationsLieStepsOrEpochsApart) {
  EXPECT_EQ(evaluation_steps({.every_epochs = 0.5}, 8), 4);
  EXPECT_EQ(evaluation_steps({.every_epochs = 0.5}, 0), 0);
  EXPECT_EQ(evaluation_steps({.every_epochs = 0}, 8), 0);
  EXPECT_EQ(evaluation_steps({.every_epochs = 0.5, .every_steps = 2000}, 8), 2000);
  EXPECT_EQ(evaluation_steps({.every_epochs = 0, .every_steps = 2000}, 0), 2000);
}

TEST(CalendarTest, PhasesAreRoundedEachForItself) {
  EXPECT_EQ(phase_steps({.phases = {0.3, 0, 0.3}}, 8), (std::vector<int64_t>{2, 0, 2}));  // 0.6 epochs would be 5
  EXPECT_EQ(phase_steps({.epochs = 0.3}, 8), (std::vector<int64_t>{2}));
  EXPECT_EQ(phase_steps({.epochs = 3, .steps = 5}, 8), (std::vector<int64_t>{5}));
  EXPECT_EQ(phase_steps({.epochs = 3}, 0), (std::vector<int64_t>{0}));
}

TEST(CalendarTest, CountsWhatIsDue) {
  for (int64_t total = 1; total < 30; ++total) {
    for (int64_t every = 0; every < 35; ++every) {
      int64_t times = 0;
      for (int64_t step = 1; step <= total; ++step) times += is_due(step, every, total) ? 1 : 0;
      EXPECT_EQ(times_due(every, total), times) << "every " << every << " of " << total;
    }
  }
}

}  // namespace
}  // namespace lockstep::run
