// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/trial.h"

#include <gtest/gtest.h>

#include "lockstep/forecast/invented_option.h"

namespace lockstep::forecast {
namespace {

class TrialTest : public InventedOption {};

TEST_F(TrialTest, DividesTheBatchAmongRanksAndPasses) {
  workload_.levers.micro_batch = 8;
  const Trial one = try_levers(context(), machine_option_of(1, 80), workload_.levers);
  EXPECT_EQ(one.rows, 64);
  EXPECT_EQ(one.micro_batch, 8);
  EXPECT_EQ(one.passes, 8);
  const Trial four = try_levers(context(), machine_option_of(4, 80), workload_.levers);
  EXPECT_EQ(four.rows, 16);
  EXPECT_EQ(four.passes, 2);
}

TEST_F(TrialTest, CountsEveryPassOfAStep) {
  const Trial whole = try_levers(context(), machine_option_of(1, 80), {"fp32", {}, 16});  // 4 passes of 16
  const Trial two = try_levers(context(), machine_option_of(1, 80), {"fp32", {}, 32});    // 2 passes of 32
  EXPECT_NEAR(whole.time->device, two.time->device, 0.05 * two.time->device);
  EXPECT_LT(whole.memory.peak_allocated, two.memory.peak_allocated);
}

TEST_F(TrialTest, KeepsTheStateOfAStepThatIsComputedTwice) {
  workload_.sample = {.sent = 3 * 32 * 32 * 4, .kept = 3 * 32 * 32 * 4};
  const Trial plain = try_levers(context(), machine_option_of(1, 80), workload_.levers);
  workload_.replay_every = 10;
  const Trial twice = try_levers(context(), machine_option_of(1, 80), workload_.levers);
  const Recording recording = invented_step({.precision = "fp32", .micro_batch = 64});
  EXPECT_EQ(twice.memory.total - plain.memory.total, recording.checkpoint_bytes);
  EXPECT_EQ(twice.memory.peak_allocated - plain.memory.peak_allocated, recording.checkpoint_bytes);
  const double upload = 64.0 * static_cast<double>(workload_.sample.sent) / Assumptions{}.upload_rate;
  EXPECT_NEAR(twice.time->step.value - plain.time->step.value, 0.1 * (plain.time->step.value - upload), 1e-9);
}

}  // namespace
}  // namespace lockstep::forecast
