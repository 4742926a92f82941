// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/timetable.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

spec::Training training(int64_t batch, double epochs) {
  spec::Training result;
  result.global_batch = batch;
  result.epochs = epochs;
  return result;
}

TEST(TimetableTest, TheLastSmallerBatchIsAStepToo) {
  const Timetable table(training(1000, 50), 7050);
  EXPECT_EQ(table.steps_per_epoch(), 8);
  EXPECT_EQ(table.total_steps(), 400);
  EXPECT_EQ(table.loader_state(7), (LoaderState{.seed = 1, .epoch = 0, .consumed = 7000}));
  EXPECT_EQ(table.loader_state(8), (LoaderState{.seed = 1, .epoch = 1, .consumed = 0}));
}

TEST(TimetableTest, StepsMayBeGivenInsteadOfEpochs) {
  auto by_steps = training(10, 0);
  by_steps.steps = 7;
  EXPECT_EQ(Timetable(by_steps, 1000).total_steps(), 7);
}

TEST(TimetableTest, PhasesFollowEachOtherAndStartTheScheduleOver) {
  auto phased = training(10, 0);
  phased.optimizer.lr = 1;
  phased.phases = {{.epochs = 2, .train_from = "head"}, {.epochs = 0.5, .train_from = "", .lr_scale = 0.1}};
  const Timetable table(phased, 100);
  ASSERT_EQ(table.phases().size(), 2U);
  EXPECT_EQ(table.phases()[1].begin, 20);
  EXPECT_EQ(table.total_steps(), 25);
  EXPECT_DOUBLE_EQ(table.learning_rate(0), 1);
  EXPECT_LT(table.learning_rate(19), 0.01);
  EXPECT_DOUBLE_EQ(table.learning_rate(20), 0.1);
}

TEST(TimetableTest, ThingsAreDueAtTheirIntervalAndAtTheEnd) {
  const Timetable table(training(10, 2.5), 40);  // 4 steps an epoch, 10 in all
  std::vector<int64_t> due;
  for (int64_t step = 1; step <= 10; ++step) {
    if (table.due(step, 1)) due.push_back(step);
  }
  EXPECT_EQ(due, (std::vector<int64_t>{4, 8, 10}));
  EXPECT_FALSE(table.due(10, 0));
  EXPECT_TRUE(table.due(2, 0.5));
}

TEST(TimetableTest, AJobWithoutLengthIsTheUsersError) {
  EXPECT_THROW(Timetable(training(10, 0), 40), base::Error);
}

}  // namespace
}  // namespace lockstep::run
