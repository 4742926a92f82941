// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/distributions.h"

#include <gtest/gtest.h>

namespace lockstep::trust {
namespace {

// scipy.stats 1.17: norm.ppf(.975), beta.cdf(.3, 2, 5), beta.ppf(.05, 91, 10), binom.cdf(3, 20, .1)
TEST(DistributionsTest, AreThoseOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_cdf(1.959963984540054), 0.975, 1e-12);
  EXPECT_NEAR(beta_cdf(0.3, 2, 5), 0.579825, 1e-12);
  EXPECT_NEAR(beta_cdf(beta_quantile(0.05, 91, 10), 91, 10), 0.05, 1e-12);
  EXPECT_NEAR(binomial_cdf(3, 20, 0.1), 0.8670466765656649, 1e-12);
  EXPECT_EQ(binomial_cdf(20, 20, 0.1), 1);
}

TEST(DistributionsTest, AnExactIntervalReachesTheEndWhereNothingFailed) {
  const Interval interval = binomial_interval(10, 10, 0.95);
  EXPECT_NEAR(interval.low, 0.6915028921812392, 1e-9);  // 0.025^(1/10)
  EXPECT_EQ(interval.high, 1);
}

TEST(DistributionsTest, CoverageOfACalibrationSpreadsAsKnown) {
  EXPECT_NEAR(beta_quantile(0.05, 91, 10), 0.848, 0.001);  // n = 100 at 90 %
  EXPECT_NEAR(beta_quantile(0.95, 91, 10), 0.945, 0.001);
  const Interval counts = beta_binomial_interval(1000, 91, 10, 0.9);
  EXPECT_LT(counts.low, 848);
  EXPECT_GT(counts.high, 944);
}

}  // namespace
}  // namespace lockstep::trust
