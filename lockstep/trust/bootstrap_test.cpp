// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/bootstrap.h"

#include <gtest/gtest.h>

#include "lockstep/base/random.h"

namespace lockstep::trust {
namespace {

TEST(BootstrapTest, HoldsTheTruthAboutAsOftenAsItSays) {
  int64_t held = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Random random(seed);
    std::vector<double> values;
    for (int i = 0; i < 120; ++i) values.push_back(random.chance(0.8) ? 1 : 0);
    held += bootstrap_mean(values, {}, {.resamples = 400, .seed = seed}).contains(0.8) ? 1 : 0;
  }
  EXPECT_GE(held, 180);
  EXPECT_LE(held, 199);
}

TEST(BootstrapTest, RowsOfOneThingCountAsOne) {
  std::vector<double> values;
  std::vector<int64_t> groups;
  base::Random random(5);
  for (int64_t group = 0; group < 40; ++group) {
    const double value = random.chance(0.5) ? 1 : 0;
    for (int i = 0; i < 10; ++i) values.push_back(value), groups.push_back(group);
  }
  const Interval alone = bootstrap_mean(values), grouped = bootstrap_mean(values, groups);
  EXPECT_GT(grouped.high - grouped.low, 2 * (alone.high - alone.low));
}

TEST(BootstrapTest, EqualValuesHaveAnExactInterval) {
  const Interval interval = bootstrap_mean(std::vector<double>(10, 1));
  EXPECT_NEAR(interval.low, 0.6915, 1e-4);
  EXPECT_EQ(interval.high, 1);
}

}  // namespace
}  // namespace lockstep::trust
