// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/outliers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/random.h"

namespace lockstep::trust {
namespace {

struct Clouds {  // three classes around points of their own, in 8 dimensions
  std::vector<float> features;
  std::vector<int64_t> labels;
  explicit Clouds(int64_t count, uint64_t seed) {
    base::Random random(seed);
    for (int64_t i = 0; i < count; ++i) {
      labels.push_back(i % 3);
      for (int64_t d = 0; d < 8; ++d) {
        features.push_back(static_cast<float>(random.normal() * (d == 0 ? 5 : 1) + (d == 1 + i % 3 ? 6 : 0)));
      }
    }
  }
  FeatureRows rows() const { return {8, features, labels, 3}; }
};

TEST(OutliersTest, EnergyIsTheLogarithmOfTheSum) {
  EXPECT_NEAR(energy_score(std::vector<float>{0, 0, 0, 0}), std::log(4.0), 1e-12);
  EXPECT_NEAR(energy_score(std::vector<float>{2000, 0}, 2), 2000, 1e-9);
}

TEST(OutliersTest, DistanceIsMeasuredByTheSpreadOfEachDirection) {
  const Clouds clouds(600, 1);
  const ClassGaussians gaussians = fit_gaussians(clouds.rows());
  std::vector<float> along{10, 6, 0, 0, 0, 0, 0, 0}, across{0, 6, 0, 0, 0, 10, 0, 0};
  EXPECT_GT(gaussians.score(along), gaussians.score(across));
  EXPECT_NEAR(gaussians.score(along), -4, 1.2);  // two deviations
}

TEST(OutliersTest, FalseAlarmsAreAsFrequentAsWasAsked) {
  const Clouds known(300, 2), thresholds(999, 3), fresh(4000, 4);
  const ClassGaussians gaussians = fit_gaussians(known.rows());
  std::vector<double> scores;
  for (int64_t i = 0; i < 999; ++i) scores.push_back(gaussians.score(thresholds.rows().row(i)));
  std::sort(scores.begin(), scores.end());
  const double threshold = *alarm_threshold(scores, 0.05);
  int64_t alarms = 0;
  for (int64_t i = 0; i < 4000; ++i) alarms += gaussians.score(fresh.rows().row(i)) < threshold ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(alarms) / 4000, 0.05, 0.02);
  EXPECT_LT(gaussians.score(std::vector<float>(8, 20)), threshold);
  EXPECT_EQ(alarm_threshold(std::vector<double>(10), 0.05), std::nullopt);
}

TEST(OutliersTest, NearestIsByDirection) {
  const std::vector<float> features{1, 0, 0, 2, 3, 3};
  const std::vector<int64_t> labels{0, 1, 0};
  const FeatureRows rows{2, features, labels, 2};
  const auto near = nearest_rows(rows, std::vector<float>{0, 5}, 2);
  ASSERT_EQ(near.size(), 2U);
  EXPECT_EQ(near[0].row, 1);
  EXPECT_NEAR(near[0].distance, 0, 1e-7);
  EXPECT_EQ(near[1].row, 2);
  EXPECT_NEAR(neighbour_score(rows, std::vector<float>{0, 5}, 10), -std::sqrt(2.0), 1e-7);
}

}  // namespace
}  // namespace lockstep::trust
