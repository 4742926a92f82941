// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/scaling.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

ScalingRow heritage(double batch, int64_t gpus, double low, double high, double samples) {
  ScalingRow row;
  row.gpus = gpus;
  row.batch = batch;
  row.low_hours = low;
  row.high_hours = high;
  row.low_samples = row.high_samples = samples;
  return row;
}

// Six rows of Mask R-CNN on MinoTauro (BSC MS5 report, 2020).
const std::vector<ScalingRow> kMinotauro{heritage(1000, 2, 13, 16, 2500),  heritage(2000, 2, 48, 48, 2500),
                                         heritage(2000, 10, 12, 12, 2500), heritage(4000, 10, 26, 30, 6000),
                                         heritage(6000, 10, 38, 45, 9000), heritage(8000, 16, 38, 45, 9000)};

TEST(ScalingTest, RecomputesTheKittiTables) {
  ScalingRow one = heritage(5, 1, 24.5, 24.5, 7000);
  one.steps = 140000;
  ScalingRow sixteen = heritage(5, 16, 1.62, 1.62, 7000);
  sixteen.steps = 8750;
  EXPECT_NEAR(rate_from_steps(one), 7.93, 0.01);
  EXPECT_NEAR(rate_from_steps(sixteen), 120.03, 0.01);
  EXPECT_NEAR(scaling_efficiency(60.8, 8, 7.93, 1), 0.958, 0.0005);
  EXPECT_NEAR(scaling_efficiency(122.24, 16, 7.93, 1), 0.963, 0.0005);
  EXPECT_NEAR(scaling_efficiency(129.28, 16, 8.28, 1), 0.976, 0.0005);
  EXPECT_NEAR(scaling_efficiency(410.5, 16, 25.8, 1), 0.994, 0.0005);
}

TEST(ScalingTest, HasBothSumsOfTheRadarsTimeline) {
  EXPECT_NEAR(remaining_time(0.58, 16 * 0.994), 0.4565, 0.00005);
  EXPECT_NEAR(remaining_time(0.58, 410.5 / 205.4), 0.710, 0.0005);
}

TEST(ReadingTest, ImagesPerEpochExplainsTheMinotauroRowsBest) {
  const auto global = fit_reading(kMinotauro, Reading::global_batch, 50);
  const auto images = fit_reading(kMinotauro, Reading::images_per_epoch, 50);
  const auto steps = fit_reading(kMinotauro, Reading::steps_per_epoch, 50);
  EXPECT_LT(images.spread, global.spread);
  EXPECT_LT(images.spread, steps.spread);
  EXPECT_NEAR(images.rate_per_gpu, 0.245, 0.001);
  EXPECT_NEAR(images.spread, 1.41, 0.01);
  EXPECT_NEAR(images.row_rates[2] * 10, 2.3, 0.05);
  EXPECT_NEAR(images.row_rates[5] * 16, 2.7, 0.05);
  EXPECT_LT(images.doubling_spread, images.spread);
}

TEST(ReadingTest, FindsTheRateAndLossThatRowsWereMadeFrom) {
  std::vector<ScalingRow> rows;
  for (const int64_t gpus : {1, 2, 4, 8}) {
    double rate = 3.0 * static_cast<double>(gpus);
    for (int64_t g = gpus; g > 1; g /= 2) rate *= 0.9;
    rows.push_back(heritage(1000, gpus, 1000 * 10 / rate / 3600, 1000 * 10 / rate / 3600, 0));
  }
  const auto fit = fit_reading(rows, Reading::images_per_epoch, 10);
  EXPECT_NEAR(fit.rate_of_one, 3.0, 1e-9);
  EXPECT_NEAR(fit.kept_per_doubling, 0.9, 1e-9);
  EXPECT_NEAR(fit.doubling_spread, 1, 1e-9);
}

}  // namespace
}  // namespace lockstep::forecast
