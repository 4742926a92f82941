// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace lockstep::run {
namespace {

std::vector<int64_t> all_of(const Order& order) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < order.size(); ++i) all.push_back(order(i));
  return all;
}

TEST(OrderTest, SlicesKeepTheirSamplesWhateverTheRanks) {
  const Range batch{100, 150};
  for (const int64_t num_ranks : {1, 2, 3, 4, 7, 8}) {
    int64_t position = batch.begin;
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      const Range mine = rank_range(batch, rank, num_ranks, 8);
      EXPECT_EQ(mine.begin, position);
      const Range slices = rank_range({0, 8}, rank, num_ranks);
      EXPECT_EQ(mine.begin, rank_range(batch, slices.begin, 8).begin);
      EXPECT_EQ(mine.end, rank_range(batch, slices.end - 1, 8).end);
      position = mine.end;
    }
    EXPECT_EQ(position, batch.end);
  }
  EXPECT_EQ(rank_range(batch, 1, 3, 0), rank_range(batch, 1, 3));
}

TEST(OrderTest, IsABijectionForEverySize) {
  for (int64_t size = 1; size <= 300; ++size) {
    const auto all = all_of(Order(size, 1, 0));
    const std::set<int64_t> seen(all.begin(), all.end());
    ASSERT_EQ(static_cast<int64_t>(seen.size()), size);
    ASSERT_EQ(*seen.rbegin(), size - 1);
  }
  const auto all = all_of(Order(1281167, 1, 0));
  std::vector<bool> seen(all.size());
  for (const int64_t sample : all) seen[static_cast<size_t>(sample)] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1281167);
}

TEST(OrderTest, IsFixedBySeedAndEpochOnly) {
  EXPECT_EQ(all_of(Order(1000, 3, 5)), all_of(Order(1000, 3, 5)));
  EXPECT_NE(all_of(Order(1000, 3, 5)), all_of(Order(1000, 3, 6)));
  EXPECT_NE(all_of(Order(1000, 3, 5)), all_of(Order(1000, 4, 5)));
}

// A drift here would silently change what every resumed run sees next.
TEST(OrderTest, NeverChangesBetweenVersions) {
  const Order order(7050, 1, 2);
  const std::vector<int64_t> first{order(0), order(1), order(2), order(7049)};
  EXPECT_EQ(first, (std::vector<int64_t>{6218, 5544, 5647, 2112}));
}

TEST(OrderTest, MixesPositionsAndEpochs) {
  constexpr int64_t kSize = 10000;
  double covariance = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    covariance += (static_cast<double>(i) - kSize / 2.0) * (static_cast<double>(Order(kSize, 1, 0)(i)) - kSize / 2.0);
  }
  EXPECT_LT(std::abs(covariance / kSize / (kSize * kSize / 12.0)), 0.04);  // correlation of position and sample
  std::vector<int64_t> counts(10);                                         // sample 0's position over many epochs
  for (int64_t epoch = 0; epoch < 2000; ++epoch) {
    const Order order(100, 1, epoch);
    ++counts[static_cast<size_t>(order(0) / 10)];
  }
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 200, 60);
}

TEST(BatchRangeTest, TrainsTheLastSmallerBatch) {
  EXPECT_EQ(num_steps(7050, 1000), 8);
  EXPECT_EQ(batch_range(7050, 1000, 0), (Range{0, 1000}));
  EXPECT_EQ(batch_range(7050, 1000, 7000), (Range{7000, 7050}));
  EXPECT_EQ(batch_range(7050, 1000, 7000).size(), 50);
  EXPECT_EQ(batch_range(7050, 1000, 7050).size(), 0);
  EXPECT_EQ(num_steps(7000, 1000), 7);
  EXPECT_EQ(num_steps(3, 1000), 1);
}

TEST(RankRangeTest, EveryRankCountSeesEverySampleOnce) {
  for (const int64_t num_ranks : {1, 2, 3, 4}) {
    std::vector<int64_t> positions;
    for (int64_t consumed = 0; consumed < 7050;) {
      const Range batch = batch_range(7050, 1000, consumed);
      for (int64_t rank = 0; rank < num_ranks; ++rank) {
        const Range mine = rank_range(batch, rank, num_ranks);
        EXPECT_LE(std::abs(mine.size() - batch.size() / num_ranks), 1);
        for (int64_t position = mine.begin; position < mine.end; ++position) positions.push_back(position);
      }
      consumed = batch.end;
    }
    std::vector<int64_t> expected(7050);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(positions, expected) << num_ranks << " ranks";
  }
}

TEST(RankRangeTest, ASmallBatchLeavesSomeRanksWithoutASample) {
  EXPECT_EQ(rank_range({10, 12}, 0, 4).size() + rank_range({10, 12}, 1, 4).size() + rank_range({10, 12}, 2, 4).size() +
                rank_range({10, 12}, 3, 4).size(),
            2);
}

}  // namespace
}  // namespace lockstep::run
