// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/forecast/invented_option.h"

namespace lockstep::forecast {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReasonsTest : public InventedOption {};

TEST_F(ReasonsTest, SaysByHowMuchItDoesNotFit) {
  const Option option = forecast_option(context(), machine_option_of(1, 2), workload_.levers);
  EXPECT_FALSE(option.trial.fits);
  EXPECT_FALSE(option.feasible());
  EXPECT_THAT(reasons(option), HasSubstr("does not fit: needs "));
  EXPECT_TRUE(forecast_option(context(), machine_option_of(1, 16), workload_.levers).feasible());
}

TEST_F(ReasonsTest, TellsWhenNoJobWouldMakeProgress) {
  workload_.walltime = 1;
  const Option option = forecast_option(context(), machine_option_of(1, 80), workload_.levers);
  EXPECT_TRUE(option.trial.fits);
  EXPECT_FALSE(option.feasible());
  EXPECT_THAT(reasons(option), HasSubstr("a walltime of 1 s is shorter than start-up"));
}

TEST_F(ReasonsTest, KeepsAnswersAboutAGpuWhoseSpeedIsNotKnown) {
  MachineOption machine_option = machine_option_of(1, 64);
  machine_option.gpu = catalogue_.gpu("h100-64");
  const Option option = forecast_option(context(), machine_option, workload_.levers);
  EXPECT_TRUE(option.trial.fits);
  EXPECT_FALSE(option.trial.time);
  EXPECT_FALSE(option.feasible());
  EXPECT_THAT(reasons(option), HasSubstr("its speed is not known"));
}

TEST_F(ReasonsTest, SaysWhichCudaDroveAGpuLast) {
  MachineOption machine_option = machine_option_of(1, 12);
  machine_option.gpu = catalogue_.gpu("k40");
  const Option option = forecast_option(context(), machine_option, {"fp32", {}, 4});
  EXPECT_FALSE(option.drivable);
  EXPECT_THAT(reasons(option), HasSubstr("no current CUDA drives it, the last one was 11.8"));
}

TEST_F(ReasonsTest, SaysWhenABatchDoesNotDivide) {
  EXPECT_THAT(reasons(forecast_option(context(), machine_option_of(3, 80), workload_.levers)),
              HasSubstr("64 samples do not divide by 3 ranks: 1 of them take 22, the others 21"));
}

TEST_F(ReasonsTest, NamesTheOperatorsThatWereCountedWithoutARule) {
  const MachineOption machine_option = machine_option_of(1, 80);
  EXPECT_THAT(reasons(forecast_option(context(), machine_option, workload_.levers)), Not(HasSubstr("has no rule")));
  recordings_ = Recordings([](const TraceKey& trace_key) {
    Recording step = invented_step(trace_key);
    step.estimated = {"aten::odd", "aten::strange"};
    return step;
  });
  EXPECT_THAT(reasons(forecast_option(context(), machine_option, workload_.levers)),
              HasSubstr("the simulation has no rule of aten::odd, aten::strange: counted by the bytes of the tensors; "
                        "the step's interval is wider for it"));
}

}  // namespace
}  // namespace lockstep::forecast
