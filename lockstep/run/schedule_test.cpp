// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/schedule.h"

#include <gtest/gtest.h>

namespace lockstep::run {
namespace {

// Values of torch.optim.lr_scheduler are compared in tests/oracles/optimizers.py; here: the shapes in closed form.
spec::Schedule named(spec::ScheduleName name) {
  spec::Schedule schedule;
  schedule.name = name;
  return schedule;
}

constexpr StepInterval kInterval{.lr = 0.4, .num_steps = 100, .steps_per_epoch = 10};

TEST(ScheduleTest, ConstantStaysAtTheRate) {
  EXPECT_EQ(learning_rate(named(spec::ScheduleName::constant), kInterval, 0), 0.4);
  EXPECT_EQ(learning_rate(named(spec::ScheduleName::constant), kInterval, 99), 0.4);
}

TEST(ScheduleTest, WarmUpRisesLinearlyToThePeak) {
  auto schedule = named(spec::ScheduleName::constant);
  schedule.warmup_epochs = 2;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 0), 0.4 / 20);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 9), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 19), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 20), 0.4);
}

TEST(ScheduleTest, CosineRunsOverTheStepsAfterTheWarmUp) {
  auto schedule = named(spec::ScheduleName::cosine);
  schedule.warmup_epochs = 2;
  schedule.final_lr = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 20), 0.4);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 60), 0.25, 1e-12);
  EXPECT_GT(learning_rate(schedule, kInterval, 99), 0.1);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 100), 0.1, 1e-12);
}

TEST(ScheduleTest, StepsDownAtTheNamedEpochs) {
  auto schedule = named(spec::ScheduleName::step);
  schedule.step_epochs = {3, 6};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 29), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, kInterval, 30), 0.04);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 60), 0.004, 1e-12);
}

TEST(ScheduleTest, OneCycleStartsLowPeaksAndEndsAtTheFinalRate) {
  const auto schedule = named(spec::ScheduleName::onecycle);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 0), 0.4 / 25, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 29), 0.4, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, kInterval, 99), 0, 1e-12);
}

TEST(ScheduleTest, PolynomialFallsWithItsPower) {
  auto schedule = named(spec::ScheduleName::polynomial);
  schedule.power = 2;
  EXPECT_NEAR(learning_rate(schedule, kInterval, 50), 0.4 * 0.25, 1e-12);
}

TEST(ScheduleTest, AnIntervalOfOneStepHasARate) {
  for (const auto name : {spec::ScheduleName::cosine, spec::ScheduleName::onecycle, spec::ScheduleName::polynomial}) {
    const double rate = learning_rate(named(name), {.lr = 0.4, .num_steps = 1, .steps_per_epoch = 1}, 0);
    EXPECT_GE(rate, 0);
    EXPECT_LE(rate, 0.4);
  }
}

TEST(RateRuleTest, TheLinearRuleMultipliesByTheBatchAndTheSqrtRuleByItsRoot) {
  spec::Training training;
  training.optimizer.lr = 0.1;
  training.global_batch = 8192;
  EXPECT_EQ(peak_rate(training), 0.1);
  EXPECT_EQ(rate_rule_text(training), "");
  training.schedule.base_batch = 256;
  training.schedule.scale = spec::RateRule::linear;
  EXPECT_NEAR(peak_rate(training), 3.2, 1e-12);  // Goyal et al.'s own figure
  training.schedule.warmup_epochs = 5;
  EXPECT_EQ(rate_rule_text(training),
            "learning rate 3.2 = 0.1 x 8192 / 256 (linear rule), warm-up from 0.1 in 5 epochs");
  training.global_batch = 1024;
  training.schedule.scale = spec::RateRule::sqrt;
  EXPECT_NEAR(peak_rate(training), 0.2, 1e-12);
}

TEST(RateRuleTest, WarmUpStartsAtTheRateOfTheBaseBatchAndReachesThePeakAsItEnds) {
  spec::Schedule schedule;
  schedule.name = spec::ScheduleName::constant;
  schedule.warmup_epochs = 5;
  const StepInterval interval{.lr = 3.2, .warmup_from = 0.1, .num_steps = 90, .steps_per_epoch = 2};
  EXPECT_NEAR(learning_rate(schedule, interval, 0), 0.1, 1e-12);
  for (int64_t step = 0; step < 10; ++step) {  // by a constant amount each step
    EXPECT_NEAR(learning_rate(schedule, interval, step + 1) - learning_rate(schedule, interval, step), 0.31, 1e-12);
  }
  EXPECT_EQ(learning_rate(schedule, interval, 10), 3.2);
}

TEST(RateRuleTest, ASmallerBatchLowersTheRateAndWarmsUpFromZero) {
  spec::Training training;
  training.optimizer.lr = 0.1;
  training.global_batch = 64;
  training.schedule.base_batch = 256;
  training.schedule.scale = spec::RateRule::linear;
  EXPECT_NEAR(peak_rate(training), 0.025, 1e-12);
  EXPECT_EQ(warmup_start(training), 0);
}

}  // namespace
}  // namespace lockstep::run
