// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/timetable.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/base/error.h"
#include "lockstep/forecast/limits.h"

namespace lockstep::verbs {
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
  EXPECT_EQ(table.loader_state(7), (data::LoaderState{.seed = 1, .epoch = 0, .consumed = 7000}));
  EXPECT_EQ(table.loader_state(8), (data::LoaderState{.seed = 1, .epoch = 1, .consumed = 0}));
}

TEST(TimetableTest, StepsMayBeGivenInsteadOfEpochs) {
  auto by_steps = training(10, 0);
  by_steps.steps = 7;
  EXPECT_EQ(Timetable(by_steps, 1000).total_steps(), 7);
}

TEST(TimetableTest, PhasesFollowEachOtherAndRunTheScheduleAnew) {
  auto phased = training(10, 0);
  phased.optimizer.lr = 1;
  phased.phases = {{.epochs = 2, .train_from = "head"}, {.epochs = 0.5, .train_from = "", .lr_scale = 0.1}};
  const Timetable table(phased, 100);
  ASSERT_EQ(table.stages().size(), 2U);
  EXPECT_EQ(table.stages()[1].begin, 20);
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

// What the plan counts is what the run does, whatever the job asks for.
TEST(TimetableTest, ThePlanCountsItsStepsAndEvaluations) {
  std::mt19937_64 random(1);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  const auto whole = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 200; ++i) {
    spec::Job job;
    job.training.global_batch = whole(1, 300);
    const int64_t samples = whole(1, 5000);
    const int64_t kind = whole(0, 2);
    if (kind == 0) job.training.epochs = draw(0.001, 5);
    if (kind == 1) job.training.steps = whole(1, 500);
    if (kind == 2) job.training.phases.resize(static_cast<size_t>(whole(1, 4)));
    for (auto& phase : job.training.phases) phase.epochs = draw(0.001, 2);
    job.evaluation.every_epochs = whole(0, 3) == 0 ? 0 : draw(0.01, 3);
    const Timetable table(job.training, samples);
    const auto length = forecast::length_of(forecast::workload_of(job, samples, 7), {.step = 1});
    ASSERT_TRUE(length);
    EXPECT_EQ(length->steps, table.total_steps()) << "kind " << kind << ", " << samples << " samples";
    EXPECT_EQ(length->steps_per_epoch, table.steps_per_epoch());
    int64_t evaluations = 0;
    for (int64_t step = 1; step <= table.total_steps(); ++step) {
      evaluations += table.due_or_last(step, job.evaluation.every_epochs) ? 1 : 0;
    }
    EXPECT_EQ(length->num_evaluations, evaluations) << "every " << job.evaluation.every_epochs << " epochs";
  }
}

TEST(TimetableTest, AJobWithoutLengthIsTheUsersError) {
  EXPECT_THROW(Timetable(training(10, 0), 40), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs
