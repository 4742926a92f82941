// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/phases.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

TEST(PhasesTest, TheMeanStepTimesTheStepsIsTheRun) {
  TimeForecast head;
  head.step = {0.001, 0.0009, 0.0012, Basis::measured};
  head.device = 0.001;
  head.by_class = {{OperatorClass::matmul, 0.001}};
  TimeForecast all;
  all.step = {0.1, 0.08, 0.15, Basis::measured};
  all.device = 0.09;
  all.compute_bound_share = 0.5;
  all.by_class = {{OperatorClass::convolution, 0.09}};
  const TimeForecast mean = mean_time({{head, 20}, {all, 8}});
  EXPECT_NEAR(28 * mean.step.value, 20 * 0.001 + 8 * 0.1, 1e-12);
  EXPECT_NEAR(28 * mean.step.low, 20 * 0.0009 + 8 * 0.08, 1e-12);
  EXPECT_NEAR(28 * mean.step.high, 20 * 0.0012 + 8 * 0.15, 1e-12);
  EXPECT_NEAR(28 * mean.by_class.at(OperatorClass::convolution), 8 * 0.09, 1e-12);
  EXPECT_NEAR(mean.compute_bound_share, 8 * 0.045 / (20 * 0.001 + 8 * 0.09), 1e-12);
}

TEST(PhasesTest, OneIsItself) {
  TimeForecast only;
  only.step = {0.25, 0.2, 0.3, Basis::measured};
  only.host_bound = true;
  only.skew = 0.01;
  const TimeForecast mean = mean_time({{only, 7}});
  EXPECT_EQ(mean.step.value, 0.25);
  EXPECT_EQ(mean.skew, 0.01);
  EXPECT_TRUE(mean.host_bound);
}

}  // namespace
}  // namespace lockstep::forecast
