// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/invented_option.h"

namespace lockstep::forecast {
namespace {

using testing::HasSubstr;

class OptionTest : public InventedOption {};

TEST_F(OptionTest, DividesTheBatchAmongRanksAndPasses) {
  workload_.levers.micro_batch = 8;
  const Trial one = try_levers(context(), machine_option_of(1, 80), workload_.levers);
  EXPECT_EQ(one.rows, 64);
  EXPECT_EQ(one.micro_batch, 8);
  EXPECT_EQ(one.passes, 8);
  const Trial four = try_levers(context(), machine_option_of(4, 80), workload_.levers);
  EXPECT_EQ(four.rows, 16);
  EXPECT_EQ(four.passes, 2);
}

TEST_F(OptionTest, GivesRanksWholeSlices) {
  workload_.virtual_ranks = 8;
  const Trial one = try_levers(context(), machine_option_of(1, 80), workload_.levers);
  EXPECT_EQ(one.micro_batch, 8);
  EXPECT_EQ(one.passes, 8);
  EXPECT_EQ(one.rows, 64);
  const Option three = forecast_option(context(), machine_option_of(3, 80), workload_.levers);
  EXPECT_EQ(three.trial.passes, 4);
  EXPECT_THAT(reasons(three), HasSubstr("8 slices (training.virtual_ranks) do not divide by 3 ranks: counted as on 2"));
}

TEST_F(OptionTest, CountsEveryPassOfAStep) {
  const Trial whole = try_levers(context(), machine_option_of(1, 80), {"fp32", {}, 16});  // 4 passes of 16
  const Trial two = try_levers(context(), machine_option_of(1, 80), {"fp32", {}, 32});    // 2 passes of 32
  EXPECT_NEAR(whole.time->device, two.time->device, 0.05 * two.time->device);
  EXPECT_LT(whole.memory.peak_allocated, two.memory.peak_allocated);
}

TEST_F(OptionTest, TurnsStepsIntoHoursEnergyAndMoney) {
  const Option option = forecast_option(context(), machine_option_of(1, 80), workload_.levers);
  ASSERT_TRUE(option.length);
  EXPECT_EQ(option.length->steps, 1000);
  EXPECT_NEAR(option.samples_per_second, 64 / option.trial.time->step.value, 1e-6);
  // Ten saves of 200 MB: steps wait for the copies, at the end for the writing and its syncs.
  const double saves = 9 * 0.2e9 / Assumptions{}.upload_rate + 0.2 + 0.03;
  EXPECT_NEAR(option.length->total, 30 + 1000 * option.trial.time->step.value + saves, 1e-6);
  ASSERT_TRUE(option.energy);
  EXPECT_GT(option.energy->joules, option.energy->device_joules);
  EXPECT_GT(option.costs.kwh, 0);
}

TEST_F(OptionTest, NeedsTheRateBetweenNodesOfTheUsersOwnMachine) {
  MachineOption machine_option = machine_option_of(16, 80);
  EXPECT_THAT(reasons(forecast_option(context(), machine_option, workload_.levers)), HasSubstr("12.5 GB/s assumed"));
  machine_option.own = true;
  machine_option.name = "machine.json";
  try {
    forecast_option(context(), machine_option, workload_.levers);
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("machine.json: links.inter.rate is not stated"));
  }
  machine_option.machine.links.inter.rate = 25e9;
  EXPECT_TRUE(forecast_option(context(), machine_option, workload_.levers).trial.time);
}

TEST_F(OptionTest, SaysWhetherItFitsWhereASpeedIsNotKnown) {
  MachineOption machine_option = machine_option_of(1, 80);
  machine_option.own = true;  // a document names the GPU, whose rates only the catalogue can know
  machine_option.gpu->bandwidth_gbs.reset();
  const Option unknown = forecast_option(context(), machine_option, workload_.levers);
  EXPECT_TRUE(unknown.trial.fits);
  EXPECT_FALSE(unknown.trial.time);
  EXPECT_THAT(reasons(unknown), HasSubstr("has no bandwidth_gbs in the catalogue"));
  machine_option = machine_option_of(1, 80);
  machine_option.only_memory = true;
  EXPECT_THAT(reasons(forecast_option(context(), machine_option, workload_.levers)),
              HasSubstr("its speed is not known: only its memory is given"));
}

TEST_F(OptionTest, SaysWhatATypeIsCountedAtThatTheGpuLacks) {
  MachineOption machine_option = machine_option_of(1, 80);
  machine_option.gpu->tflops_fp16 = 0;
  EXPECT_THAT(reasons(forecast_option(context(), machine_option, workload_.levers)),
              testing::Not(HasSubstr("counted at")));  // the step computes in fp32
  Recordings sixteen([](const TraceKey& trace_key) {
    Recording made = invented_step(trace_key);
    for (auto& op : made.operators) op.type = NumberType::fp16;
    return made;
  });
  const ForecastContext in_fp16{catalogue_, calibration_, {}, workload_, sixteen};
  EXPECT_THAT(reasons(forecast_option(in_fp16, machine_option, workload_.levers)),
              HasSubstr("invented has no fp16 tensor cores: counted at its fp32 rate"));
}

TEST_F(OptionTest, KeepsTheStateOfAStepThatIsComputedTwice) {
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

TEST_F(OptionTest, GrowsTheBatchOfARecordingWithTheRanks) {
  workload_.weak = true;
  const Option option = forecast_option(context(), machine_option_of(2, 80), workload_.levers);
  EXPECT_EQ(option.trial.rows, 64);
  EXPECT_EQ(option.length->steps_per_epoch, 50);
}

}  // namespace
}  // namespace lockstep::forecast
