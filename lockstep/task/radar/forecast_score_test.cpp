// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/forecast_score.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/random.h"

namespace lockstep::task {
namespace {

TEST(ForecastScoreTest, CountsGiveTheUsualScores) {
  RainCounts counts{30, 10, 20, 140};
  EXPECT_DOUBLE_EQ(counts.pod(), 0.75);
  EXPECT_DOUBLE_EQ(counts.far(), 0.4);
  EXPECT_DOUBLE_EQ(counts.csi(), 0.5);
  EXPECT_DOUBLE_EQ(counts.ets(), (30 - 10.0) / (60 - 10));  // by chance: 40 x 50 / 200
  counts.add(true, true);
  counts.add(false, true);
  EXPECT_EQ(counts, (RainCounts{31, 11, 20, 140}));
  EXPECT_TRUE(std::isnan(RainCounts{}.csi()));
}

// Against the definition: means over a square, of which what lies outside is dry.
TEST(ForecastScoreTest, FractionsAreMeansOfNeighbourhoods) {
  constexpr int64_t kHeight = 9, kWidth = 12;
  base::Random random(7);
  std::vector<uint8_t> forecast, seen;
  for (int64_t i = 0; i < kHeight * kWidth; ++i) {
    forecast.push_back(random.chance(0.3) ? 1 : 0);
    seen.push_back(random.chance(0.4) ? 1 : 0);
  }
  for (const int64_t side : {1, 3, 4, 5, 30}) {
    FractionSums wanted;
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        int64_t f = 0, o = 0;
        for (int64_t v = y - side / 2; v < y - side / 2 + side; ++v) {
          for (int64_t u = x - side / 2; u < x - side / 2 + side; ++u) {
            if (v < 0 || u < 0 || v >= kHeight || u >= kWidth) continue;
            f += forecast[static_cast<size_t>(v * kWidth + u)];
            o += seen[static_cast<size_t>(v * kWidth + u)];
          }
        }
        wanted.apart += (f - o) * (f - o);
        wanted.forecast += f * f;
        wanted.seen += o * o;
      }
    }
    EXPECT_EQ(fraction_sums(forecast, seen, kHeight, kWidth, side), wanted) << side;
  }
  EXPECT_EQ(fraction_sums(seen, seen, kHeight, kWidth, 3).score(), 1);
}

TEST(ForecastScoreTest, HeavyRainWeighsMore) {
  spec::Nowcast how;
  const PixelLoss loss(how);
  const RainLaw law;
  const auto weight = [&](double rate) {
    const double seen = pixel_of_dbz(law.dbz(rate));
    return loss(seen + 0.1, seen) / (0.01 + 0.1);
  };
  EXPECT_NEAR(weight(0.4), 1, 1e-9);
  EXPECT_NEAR(weight(2.1), 2, 1e-9);
  EXPECT_NEAR(weight(6), 5, 1e-9);
  EXPECT_NEAR(weight(12), 10, 1e-9);
  EXPECT_NEAR(weight(40), 30, 1e-9);
  how.loss = spec::ForecastLoss::log_cosh;
  EXPECT_NEAR(PixelLoss(how)(0.7, 0.2), std::log(std::cosh(0.5)), 1e-12);
}

TEST(ForecastScoreTest, RanksAddUpToTheSame) {
  spec::Nowcast how;
  how.outputs = 2;
  how.thresholds = {0.5, 5};
  how.scales = {3};
  base::Random random(8);
  ForecastCounts all(how), one(how), other(how);
  for (int sample = 0; sample < 6; ++sample) {
    for (int64_t lead = 0; lead < 2; ++lead) {
      std::vector<float> forecast, seen;
      for (int i = 0; i < 64; ++i) {
        forecast.push_back(static_cast<float>(random.uniform()));
        seen.push_back(i == 5 ? kMissingPixel : static_cast<float>(random.uniform()));
      }
      all.add(lead, forecast, seen, 8, 8);
      (sample % 2 == 0 ? one : other).add(lead, forecast, seen, 8, 8);
    }
  }
  one.merge(other.pack());
  EXPECT_EQ(one.pack(), all.pack());
  const RainCounts rain = all.rain(1, 0);
  EXPECT_EQ(rain.hits + rain.misses + rain.false_alarms + rain.dry, 6 * 63);
}

}  // namespace
}  // namespace lockstep::task
