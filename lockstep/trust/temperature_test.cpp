// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/temperature.h"

#include <gtest/gtest.h>

#include "lockstep/trust/drawn_rows.h"
#include "lockstep/trust/reliability.h"

namespace lockstep::trust {
namespace {

TEST(TemperatureTest, FindsHowMuchTooSureANetworkIs) {
  for (const double sharpness : {0.5, 1.0, 3.0}) {
    const ClassRows rows = drawn_rows(4000, 5, sharpness, 2);
    const double found = fit_temperature(rows);
    EXPECT_NEAR(found / sharpness, 1, 0.06);
    const double least = reliability(rows, found).nll;
    EXPECT_LE(least, reliability(rows, found * 1.001).nll);
    EXPECT_LE(least, reliability(rows, found / 1.001).nll);
  }
}

TEST(TemperatureTest, StaysWithinItsBoundsWhereThereIsNoBest) {
  ClassRows right, wrong;
  right.add(std::vector<float>{5, 0}, 0, 0);
  wrong.add(std::vector<float>{5, 0}, 1, 0);
  EXPECT_EQ(fit_temperature(right), kLeastTemperature);
  EXPECT_EQ(fit_temperature(wrong), kMostTemperature);
}

}  // namespace
}  // namespace lockstep::trust
