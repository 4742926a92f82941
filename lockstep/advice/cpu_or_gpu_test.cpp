// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/cpu_or_gpu.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

TEST(CpuOrGpuTest, SaysGpuWithTheFactorOfTheWholeRun) {
  const planning::Plan plan = planning::invented_plan({"i7-8700", "a100-80"});
  const Advice advice = cpu_or_gpu(plan, {});
  const double gain = planning::run_seconds(plan.options[0]) / planning::run_seconds(plan.options[1]);
  ASSERT_GT(gain, 3);
  EXPECT_TRUE(advice.document.at("verdict").as_string().starts_with("GPU: a100-80 takes "));
  EXPECT_DOUBLE_EQ(advice.document.at("devices").items()[1].at("speed_up").as_double(), gain);
}

// A step in another precision moves other bytes.
TEST(CpuOrGpuTest, CountsTheBytesOfEachDevicesOwnStep) {
  planning::Plan plan = planning::invented_plan({"i7-8700", "a100-80"});
  const double bytes = plan.options[0].trial.time->bytes;
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(plan.options[1].trial.time->bytes, bytes);
  plan.options[1].trial.time->bytes = bytes / 2;
  const Advice advice = cpu_or_gpu(plan, {});
  EXPECT_EQ(advice.document.at("devices").items()[0].at("step_bytes").as_double(), bytes);
  EXPECT_EQ(advice.document.at("devices").items()[1].at("step_bytes").as_double(), bytes / 2);
}

TEST(CpuOrGpuTest, SaysThatTheCpuIsEnoughWhenTheGpuGainsLittle) {
  planning::Plan plan = planning::invented_plan({"i7-8700", "a100-80"});
  plan.options[0].length->total = 2 * plan.options[1].length->total;
  EXPECT_TRUE(cpu_or_gpu(plan, {}).document.at("verdict").as_string().starts_with("CPU is enough: "));
}

TEST(CpuOrGpuTest, NeedsBothSides) {
  EXPECT_THROW(cpu_or_gpu(planning::invented_plan({"i7-8700"}), {}), base::Error);
  EXPECT_THROW(cpu_or_gpu(planning::invented_plan({"t4"}), {}), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
