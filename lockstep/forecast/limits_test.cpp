// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/limits.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/run/timetable.h"

namespace lockstep::forecast {
namespace {

const RunAmount kRun{.samples = 7050, .global_batch = 1000, .span = {.epochs = 10}};

TEST(LimitsTest, CountsTheLastSmallerBatchAsItsShareOfAStep) {
  const auto length = estimate_length(kRun, {.step = 2});
  ASSERT_TRUE(length);
  EXPECT_EQ(length->steps_per_epoch, 8);
  EXPECT_EQ(length->last_batch, 50);
  EXPECT_EQ(length->steps, 80);
  EXPECT_DOUBLE_EQ(length->epoch, 2 * 7.05);
  EXPECT_DOUBLE_EQ(length->total, 2 * 70.5);
  EXPECT_EQ(length->jobs, 1);
}

TEST(LimitsTest, PhasesOnCachedFeaturesReadNoSamples) {
  RunAmount work = kRun;
  work.span = {.phases = {8, 2}};
  Pace pace{.step = 0.8 * 0.1 + 0.2 * 2, .loader_rate = 250};  // 4 s a batch
  pace.phases = {{.share = 0.8, .step = 0.1, .loads = false}, {.share = 0.2, .step = 2}};
  pace.features = 30;
  const auto length = estimate_length(work, pace);
  EXPECT_TRUE(length->loader_bound);
  EXPECT_NEAR(length->total, 70.5 * (0.8 * 0.1 + 0.2 * 4) + 30, 1e-9);
  EXPECT_DOUBLE_EQ(length->features, 30);
  pace.loader_rate = 0;
  EXPECT_NEAR(estimate_length(work, pace)->total, 70.5 * (0.8 * 0.1 + 0.2 * 2) + 30, 1e-9);
}

TEST(LimitsTest, AddsEvaluationsAndSavesAsOftenAsTheJobAsks) {
  RunAmount work = kRun;
  work.validation_samples = 100;
  work.evaluation.every_epochs = 3;  // after 3, 6, 9 and at the end
  work.save_every = 0;               // at the end
  const auto length = estimate_length(work, {.step = 2, .evaluation_sample = 0.01, .save = 5});
  EXPECT_DOUBLE_EQ(length->evaluations, 4.0);
  EXPECT_DOUBLE_EQ(length->saves, 5.0);
  EXPECT_DOUBLE_EQ(length->total, 141.0 + 4 + 5);
}

TEST(LimitsTest, StepsWaitForTheCopyOnlyAndForTheLastSave) {
  const Pace pace{.step = 2, .save = 5, .stall = 0.5};
  const auto length = estimate_length(kRun, pace);
  EXPECT_EQ(length->num_saves, 10);
  EXPECT_DOUBLE_EQ(length->saves, 9 * 0.5 + 5);
  EXPECT_DOUBLE_EQ(length->epoch, 14.1 + 0.5);
  // One that takes longer than an epoch is waited for by the next.
  EXPECT_NEAR(estimate_length(kRun, {.step = 2, .save = 20, .stall = 0.5})->saves, 9 * (0.5 + 20 - 14.1) + 20, 1e-9);
}

TEST(LimitsTest, TheEndOfARunIsCountedOnce) {
  const Pace pace{.step = 2, .start_up = 60, .save = 5, .finish = 7, .walltime = 600};
  const Pace without{.step = 2, .start_up = 60, .save = 5, .walltime = 600};
  EXPECT_DOUBLE_EQ(estimate_length(kRun, pace)->total, estimate_length(kRun, without)->total + 7);
  EXPECT_DOUBLE_EQ(estimate_length(kRun, pace)->useful, estimate_length(kRun, without)->useful + 7);
}

TEST(LimitsTest, AFinishForWhichNoTimeIsLeftTakesAJobMore) {
  Pace pace{.step = 2, .start_up = 60, .restore = 10, .save = 5, .walltime = 250};
  const auto before = estimate_length(kRun, pace);
  ASSERT_EQ(before->jobs, 1);
  pace.finish = pace.walltime - before->total + 1;
  EXPECT_EQ(estimate_length(kRun, pace)->jobs, 2);
  EXPECT_DOUBLE_EQ(estimate_length(kRun, pace)->total, 250 + 60 + 10 + pace.finish);
  pace.finish = 200;  // in no job of 250 s
  EXPECT_EQ(estimate_length(kRun, pace)->jobs, 0);
  EXPECT_DOUBLE_EQ(estimate_length(kRun, pace)->shortest_walltime, 60 + 10 + 200);
}

TEST(LimitsTest, SavesByTheClockAsOftenAsItStrikes) {
  RunAmount work = kRun;
  work.save_every = 0;
  // 141 s of steps: saved after 60, 85, 110, 135 and at the end.
  const Pace pace{.step = 2, .save = 3, .stall = 0.25, .first_save = 60, .save_interval = 25};
  const auto length = estimate_length(work, pace);
  EXPECT_EQ(length->num_saves, 5);
  EXPECT_DOUBLE_EQ(length->saves, 4 * 0.25 + 3);
  EXPECT_DOUBLE_EQ(length->epoch, 14.1 * 1.01);
  work.span.epochs = 4;  // over before the clock strikes
  EXPECT_EQ(estimate_length(work, pace)->num_saves, 1);
}

TEST(LimitsTest, LetsASlowLoaderSetThePace) {
  const auto length = estimate_length(kRun, {.step = 2, .loader_rate = 100});
  EXPECT_TRUE(length->loader_bound);
  EXPECT_DOUBLE_EQ(length->epoch, 70.5);
  EXPECT_FALSE(estimate_length(kRun, {.step = 2, .loader_rate = 1000})->loader_bound);
}

TEST(LimitsTest, NeedsNoSampleCountWhenTheRunIsGivenInSteps) {
  const auto length = estimate_length({.global_batch = 256, .span = {.steps = 1000}}, {.step = 0.5});
  ASSERT_TRUE(length);
  EXPECT_EQ(length->steps, 1000);
  EXPECT_EQ(length->steps_per_epoch, 0);
  EXPECT_DOUBLE_EQ(length->total, 500);
  EXPECT_FALSE(estimate_length({.global_batch = 256, .span = {.epochs = 3}}, {.step = 0.5}));
}

TEST(LimitsTest, KnowsTheEpochOfARunWithoutLength) {
  const auto length = estimate_length({.samples = 7050, .global_batch = 1000}, {.step = 2, .start_up = 3});
  ASSERT_TRUE(length);
  EXPECT_DOUBLE_EQ(length->epoch, 14.1);
  EXPECT_EQ(length->jobs, 1);
  EXPECT_DOUBLE_EQ(length->total, 3);
}

TEST(LimitsTest, SplitsARunIntoJobsThatEachStartRestoreAndSave) {
  // 1410 s of steps and 10 saves that cost 5 s each; a job of 600 s.
  const Pace pace{.step = 20, .start_up = 60, .restore = 15, .save = 5, .stall = 5, .walltime = 600};
  const auto length = estimate_length(kRun, pace);
  EXPECT_DOUBLE_EQ(length->useful, 1460);
  // A step takes 17.625 s with the share of the last; 2 saves, 2 steps and 30 s are kept back: 75.25 s. The first job
  // stops after the step that begins at 533.25 s, its 27th, the others after 26: one step is left to a fourth.
  EXPECT_EQ(length->jobs, 4);
  EXPECT_DOUBLE_EQ(length->total, 1460 + 4 * 60 + 3 * (15 + 5));
}

TEST(LimitsTest, FindsNoJobWhenTheWalltimeIsShorterThanStartOneStepAndTwoSaves) {
  const Pace pace{.step = 20, .start_up = 60, .restore = 15, .save = 5, .walltime = 90};
  const auto length = estimate_length(kRun, pace);
  EXPECT_EQ(length->jobs, 0);
  EXPECT_DOUBLE_EQ(length->shortest_walltime, 60 + 15 + 17.625 + 2 * 5);
}

TEST(LimitsTest, RunsAShortJobUnderAShortWalltime) {
  const auto length = estimate_length({.global_batch = 1, .span = {.steps = 2}},
                                      {.step = 1, .start_up = 10, .restore = 50, .walltime = 20});
  EXPECT_EQ(length->jobs, 1);
}

// What the plan counts is what the run does, whatever the job asks for.
TEST(LimitsTest, CountsTheStepsAndEvaluationsOfTheTimetable) {
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
    job.evaluation.every_steps = whole(0, 3) == 0 ? whole(1, 100) : 0;
    const run::Timetable table(job.training, samples);
    const auto length = estimate_length(run_amount_of(job, samples, 7), {.step = 1});
    ASSERT_TRUE(length);
    EXPECT_EQ(length->steps, table.total_steps()) << "kind " << kind << ", " << samples << " samples";
    EXPECT_EQ(length->steps_per_epoch, table.steps_per_epoch());
    int64_t evaluations = 0;
    for (int64_t step = 1; step <= table.total_steps(); ++step) {
      evaluations += table.evaluates(step, job.evaluation) ? 1 : 0;
    }
    EXPECT_EQ(length->num_evaluations, evaluations)
        << "every " << job.evaluation.every_epochs << " epochs or " << job.evaluation.every_steps << " steps";
  }
}

}  // namespace
}  // namespace lockstep::forecast
