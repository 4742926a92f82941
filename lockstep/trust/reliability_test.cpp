// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/reliability.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

// By hand: confidence 0.8 for class 0, of five rows three right.
TEST(ReliabilityTest, IsTheGapBetweenConfidenceAndAccuracy) {
  ClassRows rows;
  const auto logit = static_cast<float>(std::log(4.0));
  for (int64_t i = 0; i < 5; ++i) rows.add(std::vector<float>{logit, 0}, i < 3 ? 0 : 1, i);
  const Reliability found = reliability(rows, 1, 10);
  EXPECT_NEAR(found.ece, 0.2, 1e-6);
  EXPECT_NEAR(found.adaptive_ece, 0.6 * 0.2 + 0.4 * 0.8, 1e-6);  // ten bins of at most one row each
  EXPECT_NEAR(found.brier, 0.6 * 2 * 0.04 + 0.4 * 2 * 0.64, 1e-6);
  EXPECT_NEAR(found.nll, -0.6 * std::log(0.8) - 0.4 * std::log(0.2), 1e-6);
  EXPECT_EQ(found.bins[7].rows + found.bins[8].rows, 5);
  EXPECT_NEAR(found.accuracy, 0.6, 1e-12);
}

TEST(ReliabilityTest, TheRightTemperatureBringsTheErrorDown) {
  const ClassRows rows = drawn_rows(4000, 5, 3, 1);
  EXPECT_GT(reliability(rows).ece, 0.1);
  EXPECT_LT(reliability(rows, 3).ece, 0.03);
}

}  // namespace
}  // namespace lockstep::trust
