// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/grouped_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::run {
namespace {

std::vector<int32_t> three_groups(int64_t size) {  // 0, 1 and 2, the last of them twice as often
  std::vector<int32_t> groups;
  for (int64_t i = 0; i < size; ++i) groups.push_back(static_cast<int32_t>(std::min<int64_t>(2, i * 7 % 4)));
  return groups;
}

std::vector<GroupedOrder::Batch> epoch_of(const GroupedOrder& order, int64_t batch, int64_t epoch) {
  std::vector<GroupedOrder::Batch> all;
  for (int64_t at = 0; at < order.size(); at += batch) {
    all.push_back(order.batch(epoch, batch_range(order.size(), batch, at)));
  }
  return all;
}

TEST(GroupedOrderTest, AnEpochHasEachSampleOnceAndItsBatchesOneGroup) {
  const auto groups = three_groups(103);
  const GroupedOrder order(groups, 8, 5);
  for (const int64_t epoch : {0, 1, 9}) {
    std::vector<int64_t> seen;
    std::map<int32_t, int64_t> batches;
    const auto all = epoch_of(order, 8, epoch);
    ASSERT_EQ(all.size(), 13U);
    for (const auto& batch : all) {
      seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
      ++batches[batch.group];
      if (batch.group == 0) continue;
      for (const int64_t id : batch.samples) EXPECT_EQ(groups[static_cast<size_t>(id)], batch.group);
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> expected(groups.size());
    std::iota(expected.begin(), expected.end(), int64_t{0});
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(all.front().group, 0);
    EXPECT_EQ(all.back().samples.size(), 7U);
    EXPECT_EQ(all.back().group, 0);
    EXPECT_GE(batches[2], order.batches(2) - 1);  // the first of an epoch may be one of them
  }
  EXPECT_EQ(order.batches(1), 3);  // of 26
  EXPECT_EQ(order.batches(2), 6);  // of 51
  EXPECT_EQ(order.batches(0), 4);  // of 26, 2 and 3 samples
  EXPECT_EQ(order.batches(7), 0);
}

TEST(GroupedOrderTest, DependsOnSeedAndEpochAlone) {
  const GroupedOrder order(three_groups(64), 4, 5), same(three_groups(64), 4, 5), other(three_groups(64), 4, 6);
  const auto ids = [](const GroupedOrder& from, int64_t epoch, int64_t at) {
    return from.batch(epoch, {at, at + 4}).samples;
  };
  EXPECT_EQ(ids(order, 2, 32), ids(same, 2, 32));
  EXPECT_NE(ids(order, 2, 32), ids(order, 3, 32));
  EXPECT_NE(ids(order, 2, 32), ids(other, 2, 32));
}

TEST(GroupedOrderTest, GroupsSmallerThanABatchAreMixed) {
  const GroupedOrder order({1, 2, 1, 2, 3}, 4, 1);
  EXPECT_EQ(order.batches(0), 2);
  const auto all = epoch_of(order, 4, 0);
  EXPECT_EQ(all[0].group, 0);
  EXPECT_EQ(all[1].samples.size(), 1U);
}

}  // namespace
}  // namespace lockstep::run
