// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/conformal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

TEST(ConformalTest, TheThresholdIsAnOrderStatistic) {
  std::vector<double> scores(19);
  std::iota(scores.begin(), scores.end(), 1.0);
  EXPECT_EQ(conformal_threshold(scores, 0.95), 19);  // (19 + 1) * 0.95 = 19
  EXPECT_EQ(conformal_threshold(scores, 0.9), 18);
  EXPECT_EQ(conformal_threshold(scores, 0.96), std::nullopt);
  EXPECT_EQ(fewest_rows(0.95), 19);
  EXPECT_EQ(fewest_rows(0.9), 9);
  EXPECT_EQ(fewest_rows(0.99), 99);
}

TEST(ConformalTest, SetsHoldWhatScoresNoMoreAndAreNeverEmpty) {
  const std::vector<double> shares{0.2, 0.5, 0.3};
  EXPECT_EQ(prediction_set(shares, 0.7, SetMethod::lac), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(prediction_set(shares, 0.4, SetMethod::lac), (std::vector<int64_t>{1}));
  EXPECT_EQ(prediction_set(shares, 0.8, SetMethod::aps, 0.5), (std::vector<int64_t>{1, 2}));
  EXPECT_NEAR(conformal_score(shares, 2, SetMethod::aps, 0.5), 0.65, 1e-12);
  EXPECT_NEAR(conformal_score(shares, 2, SetMethod::lac), 0.7, 1e-12);
}

// 100 splits of one set of rows: the coverage of each within what calibrations of that many rows bring, 99 of 100
// times, and on average the one that was asked for.
TEST(ConformalTest, CoverageIsInsideItsIntervalOverAHundredSplits) {
  constexpr int64_t kRows = 2000, kCalibrated = 400;
  constexpr double kCoverage = 0.9;
  for (const SetMethod method : {SetMethod::lac, SetMethod::aps}) {
    int64_t inside = 0;
    double mean = 0;
    for (uint64_t split = 0; split < 100; ++split) {
      const ClassRows rows = drawn_rows(kRows, 6, 2.5, 100 + split);
      std::vector<double> scores;
      for (int64_t i = 0; i < kRows; ++i) {
        scores.push_back(
            conformal_score(softmax(rows.row(i)), rows.labels[static_cast<size_t>(i)], method, draw_for(rows.row(i))));
      }
      std::vector<double> calibrated(scores.begin(), scores.begin() + kCalibrated);
      std::sort(calibrated.begin(), calibrated.end());
      const double threshold = *conformal_threshold(calibrated, kCoverage);
      const auto held =
          std::count_if(scores.begin() + kCalibrated, scores.end(), [&](double score) { return score <= threshold; });
      const double found = static_cast<double>(held) / (kRows - kCalibrated);
      mean += found / 100;
      inside += coverage_interval(kCalibrated, kRows - kCalibrated, kCoverage, 0.99).contains(found) ? 1 : 0;
    }
    EXPECT_GE(inside, 95);  // 100 draws with a chance of 99 %: fewer than 95 once in 2,000 times; the rows are fixed
    EXPECT_NEAR(mean, kCoverage, 0.006);
  }
}

}  // namespace
}  // namespace lockstep::trust
