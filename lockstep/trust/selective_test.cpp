// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/selective.h"

#include <gtest/gtest.h>

#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

TEST(SelectiveTest, RiskIsTheMeanErrorOfTheSurest) {
  const std::vector<Answer> all{{0, 0.9, true}, {0, 0.8, false}, {0, 0.7, true}, {0, 0.6, true}};
  const RiskCoverage curve = risk_coverage(all);
  EXPECT_NEAR(curve.aurc, (0 + 0.5 + 1.0 / 3 + 0.25) / 4, 1e-12);
  EXPECT_NEAR(curve.best_aurc, 0.25 / 4, 1e-12);
  ASSERT_EQ(curve.points.size(), 4U);
  EXPECT_EQ(curve.points[1].confidence, 0.8);
  EXPECT_EQ(curve.points[3].coverage, 1);
}

TEST(SelectiveTest, AThresholdKeepsTheRiskOnOtherRows) {
  int64_t broken = 0, found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto threshold = confidence_for_risk(answers(drawn_rows(1000, 4, 1, 1000 + seed)), 0.2);
    if (!threshold) continue;
    ++found;
    int64_t wrong = 0, answered = 0;
    for (const auto& answer : answers(drawn_rows(4000, 4, 1, 5000 + seed))) {
      if (answer.confidence < *threshold) continue;
      ++answered;
      wrong += answer.right ? 0 : 1;
    }
    broken += static_cast<double>(wrong) > 0.2 * static_cast<double>(answered) ? 1 : 0;
  }
  EXPECT_LE(broken, 15);  // promised: 10 of 100
  EXPECT_GE(found, 90);
}

// 59 % of these are wrong, the surest among them: a risk of 90 % is kept all the same, one of 50 % is not.
TEST(SelectiveTest, ALenientRiskDoesNotHangOnTheSurestRows) {
  std::vector<Answer> rows;
  for (int i = 0; i < 34; ++i) rows.push_back({0, 0.9 - 0.01 * i, i >= 20});
  EXPECT_EQ(confidence_for_risk(rows, 0.9), rows.back().confidence);
  EXPECT_EQ(confidence_for_risk(rows, 0.5), std::nullopt);
}

TEST(SelectiveTest, SaysWhereNoThresholdCanBeShown) {
  EXPECT_EQ(confidence_for_risk(std::vector<Answer>(5, {0, 0.9, true}), 0.01), std::nullopt);  // five are too few
  EXPECT_EQ(confidence_for_risk(std::vector<Answer>(500, {0, 0.9, false}), 0.5), std::nullopt);
}

}  // namespace
}  // namespace lockstep::trust
