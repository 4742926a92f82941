// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/many_ranks.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/forecast/collective.h"

namespace lockstep::forecast {
namespace {

constexpr double kBinaryMega = 1 << 20;

TEST(ManyRanksTest, OneRankWaitsForNobody) {
  const auto alone = forecast_ranks({.step_seconds = 1, .gradient_bytes = 1e8}, 1, [](double, int64_t) { return 9.0; });
  EXPECT_EQ(alone.step, 1);
  EXPECT_EQ(alone.efficiency, 1);
}

TEST(ManyRanksTest, BucketsAreTheReducers) {
  const auto buckets = bucket_bytes(60 * kBinaryMega);
  EXPECT_EQ(buckets, (std::vector<double>{kBinaryMega, 25 * kBinaryMega, 25 * kBinaryMega, 9 * kBinaryMega}));
  EXPECT_TRUE(bucket_bytes(0).empty());
}

TEST(ManyRanksTest, OnlyTheLastBucketOfAFastNetworkShows) {
  const RankCosts costs{.step_seconds = 3, .gradient_bytes = 51 * kBinaryMega, .noise = 0};
  const auto forecast = forecast_ranks(costs, 4, [](double bytes, int64_t) { return bytes / kBinaryMega * 1e-3; });
  EXPECT_NEAR(forecast.communication, .051, 1e-12);
  EXPECT_NEAR(forecast.exposed, .025, 1e-12);
  EXPECT_NEAR(forecast.step, 3.025, 1e-12);
  EXPECT_NEAR(forecast.hidden_share(), 26.0 / 51, 1e-12);
}

TEST(ManyRanksTest, ASlowNetworkIsNeverHidden) {
  const RankCosts costs{.step_seconds = 3, .gradient_bytes = 51 * kBinaryMega, .noise = 0};
  const auto forecast = forecast_ranks(costs, 4, [](double, int64_t) { return 10.0; });
  EXPECT_NEAR(forecast.exposed, 30 - (2 - 2.0 / 51), 1e-9);  // it starts with the first bucket
}

TEST(ManyRanksTest, WithoutOverlapEverythingShows) {
  const RankCosts costs{.step_seconds = 3, .gradient_bytes = 51 * kBinaryMega, .noise = 0, .overlaps = false};
  const auto forecast = forecast_ranks(costs, 4, [](double bytes, int64_t) { return bytes / kBinaryMega * 1e-3; });
  EXPECT_NEAR(forecast.exposed, forecast.communication, 1e-12);
}

TEST(ManyRanksTest, MoreRanksWaitLongerForTheSlowest) {
  const RankCosts costs{.step_seconds = 1, .gradient_bytes = 1};
  double before = 0;
  for (const int64_t ranks : {2, 16, 128, 1024}) {
    const auto forecast = forecast_ranks(costs, ranks, [](double, int64_t) { return 0.0; });
    EXPECT_GT(forecast.skew, before);
    before = forecast.skew;
  }
  EXPECT_LT(before, .03);  // 0.7 % times three deviations
}

TEST(ManyRanksTest, AFittedLinkGivesBackWhatItWasFittedTo) {
  const Network link = fitted_link(4096, 2e-5, 1e8, .05);
  EXPECT_NEAR(mpi_collective_seconds(CollectiveKind::all_reduce, 4096, link), 2e-5, 1e-9);
  EXPECT_NEAR(mpi_collective_seconds(CollectiveKind::all_reduce, 1e8, link), .05, 1e-6);
}

}  // namespace
}  // namespace lockstep::forecast
