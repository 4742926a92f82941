// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/balanced_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace lockstep::run {
namespace {

// 90 of class 0, 9 of class 1, one of class 3.
std::vector<int32_t> uneven() {
  std::vector<int32_t> labels(90, 0);
  labels.insert(labels.end(), 9, 1);
  labels.push_back(3);
  return labels;
}

std::map<int64_t, int64_t> times(const BalancedOrder& order, int64_t from, int64_t to) {
  std::map<int64_t, int64_t> all;
  for (int64_t epoch = from; epoch < to; ++epoch) {
    for (const int64_t id : order.samples(epoch, {0, order.size()})) ++all[id];
  }
  return all;
}

TEST(BalancedOrderTest, EveryClassHasItsQuotaOfEveryEpoch) {
  const BalancedOrder even(uneven(), 1, 7);
  EXPECT_EQ(even.quota(0) + even.quota(1) + even.quota(3), 100);
  EXPECT_EQ(even.quota(2), 0);
  for (const int32_t label : {0, 1, 3}) EXPECT_NEAR(static_cast<double>(even.quota(label)), 100.0 / 3, 1) << label;
  const BalancedOrder half(uneven(), 0.5, 7);  // by the root of their numbers: 9.49, 3, 1
  EXPECT_NEAR(static_cast<double>(half.quota(0)), 100 * 9.487 / 13.487, 1);
  for (const int64_t epoch : {0, 1, 5}) {
    std::map<int32_t, int64_t> drawn;
    for (const int64_t id : even.samples(epoch, {0, 100})) ++drawn[uneven()[static_cast<size_t>(id)]];
    EXPECT_EQ(drawn[0], even.quota(0));
    EXPECT_EQ(drawn[1], even.quota(1));
    EXPECT_EQ(drawn[3], even.quota(3));
  }
}

TEST(BalancedOrderTest, OverARunEverySampleOfAClassComesAsOftenAsAnyOther) {
  const BalancedOrder order(uneven(), 1, 7);
  for (const int64_t epochs : {1, 4, 9}) {
    const auto drawn = times(order, 0, epochs);
    for (const Range same : {Range{0, 90}, Range{90, 99}}) {
      int64_t least = 1 << 20, most = 0;
      for (int64_t id = same.begin; id < same.end; ++id) {
        const int64_t count = drawn.contains(id) ? drawn.at(id) : 0;
        least = std::min(least, count);
        most = std::max(most, count);
      }
      EXPECT_LE(most - least, 1) << epochs;
    }
  }
}

TEST(BalancedOrderTest, AnyCutOfAnEpochGivesTheSameSamples) {
  const BalancedOrder order(uneven(), 1, 7), again(uneven(), 1, 7), other(uneven(), 1, 8);
  std::vector<int64_t> joined;
  for (const Range part : {Range{0, 1}, Range{1, 60}, Range{60, 100}}) {
    const auto ids = again.samples(3, part);
    joined.insert(joined.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(order.samples(3, {0, 100}), joined);
  EXPECT_NE(order.samples(4, {0, 100}), joined);
  EXPECT_NE(other.samples(3, {0, 100}), joined);
}

}  // namespace
}  // namespace lockstep::run
