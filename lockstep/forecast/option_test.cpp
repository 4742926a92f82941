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

TEST_F(OptionTest, TurnsStepsIntoHoursEnergyAndMoney) {
  const Option option = forecast_option(context(), machine_option_of(1, 80), workload_.levers);
  ASSERT_TRUE(option.length);
  EXPECT_EQ(option.length->steps, 1000);
  EXPECT_NEAR(option.samples_per_second, 64 / option.trial.time->step.value, 1e-6);
  // Ten saves of 200 MB: steps wait for the copies, at the end for the hash, the writing and its syncs.
  const Assumptions assumed;
  const double written = 0.2e9 / assumed.hash_rate + 0.2e9 / assumed.write_rate;
  const double saves = 9 * 0.2e9 / assumed.copy_rate + written + 0.03;
  EXPECT_NEAR(option.pace.save, written + 0.03, 1e-9);
  // Then the last copy, the state's own hash, and the weights as a file.
  const Recording recording = invented_step({.precision = "bf16", .micro_batch = 64});
  const auto weights = static_cast<double>(recording.parameter_bytes);
  const double finish = 0.3 + 0.2e9 / assumed.copy_rate + 0.2e9 / assumed.upload_rate + 0.2e9 / assumed.hash_rate +
                        weights / assumed.hash_rate + weights / assumed.write_rate;
  EXPECT_NEAR(option.pace.finish, finish, 1e-9);
  EXPECT_NEAR(option.length->total, assumed.start_up + 1000 * option.trial.time->step.value + saves + finish, 1e-6);
  ASSERT_TRUE(option.energy);
  EXPECT_GT(option.energy->joules, option.energy->device_joules);
  EXPECT_GT(option.costs.kwh, 0);
}

TEST_F(OptionTest, AJobStartsUpAsItsDeviceDoes) {
  Assumptions assumed;
  assumed.start_up = 2;
  assumed.start_up_cpu = 7;
  MachineOption machine_option = machine_option_of(1, 80);
  EXPECT_EQ(assumed.start_up_of(machine_option), 2);
  machine_option.gpu.reset();
  EXPECT_EQ(assumed.start_up_of(machine_option), 7);
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

TEST_F(OptionTest, GrowsTheBatchOfARecordingWithTheRanks) {
  workload_.weak = true;
  const Option option = forecast_option(context(), machine_option_of(2, 80), workload_.levers);
  EXPECT_EQ(option.trial.rows, 64);
  EXPECT_EQ(option.length->steps_per_epoch, 50);
}

}  // namespace
}  // namespace lockstep::forecast
