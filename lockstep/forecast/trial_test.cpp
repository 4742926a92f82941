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

// Nodes differ in PCIe and memory: what nobody measured is known to a factor of two.
TEST_F(TrialTest, AnUploadToAGpuThatWasNotCalibratedIsLessCertain) {
  workload_.sample = {.sent = 3 * 224 * 224 * 4, .kept = 3 * 224 * 224 * 4};
  const double upload = 64.0 * static_cast<double>(workload_.sample.sent) / Assumptions{}.upload_rate;
  const SampleBytes sample = workload_.sample;
  for (const bool calibrated : {true, false}) {
    MachineOption machine_option = machine_option_of(1, 80);
    if (!calibrated) machine_option.gpu->id = "other";
    workload_.sample = {};
    const Interval without = try_levers(context(), machine_option, workload_.levers).time->step;
    workload_.sample = sample;
    const Interval with = try_levers(context(), machine_option, workload_.levers).time->step;
    EXPECT_NEAR(with.value - without.value, upload, 1e-9);
    EXPECT_NEAR(with.low - without.low, (calibrated ? 1 : 0.5) * upload, 1e-9);
    EXPECT_NEAR(with.high - without.high, (calibrated ? 1 : 2) * upload, 1e-9);
  }
}

// Behind a step that takes longer it takes nothing; at the interval's end it may.
TEST_F(TrialTest, AnUploadThatIsSentAheadMayStillBeWaitedFor) {
  MachineOption machine_option = machine_option_of(1, 80);
  machine_option.gpu->id = "other";
  const Interval without = try_levers(context(), machine_option, workload_.levers).time->step;
  const double rate = Assumptions{}.upload_rate;
  workload_.sample.sent = static_cast<int64_t>(0.9 * without.value * rate / 64);
  workload_.sample.ahead = true;
  const Interval with = try_levers(context(), machine_option, workload_.levers).time->step;
  EXPECT_EQ(with.value, without.value);
  EXPECT_EQ(with.low, without.low);
  EXPECT_NEAR(with.high, 1.8 * without.value, 1e-6 * without.value);
}

}  // namespace
}  // namespace lockstep::forecast
