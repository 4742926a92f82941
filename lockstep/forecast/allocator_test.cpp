// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/allocator.h"

#include <gtest/gtest.h>

#include "lockstep/base/random.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kMega = int64_t{1} << 20;

Allocator::Block take(Allocator& allocator, int64_t bytes, int64_t stream = 0) {
  const auto block = allocator.allocate(bytes, stream);
  EXPECT_TRUE(block.has_value()) << bytes;
  return block.value_or(-1);
}

TEST(AllocatorTest, RoundsUpTo512Bytes) {
  Allocator allocator;
  EXPECT_EQ(allocator.size(take(allocator, 1)), 512);
  EXPECT_EQ(allocator.size(take(allocator, 512)), 512);
  EXPECT_EQ(allocator.size(take(allocator, 513)), 1024);
  EXPECT_EQ(allocator.now().requested, 1026);
  EXPECT_EQ(allocator.now().allocated, 2048);
}

TEST(AllocatorTest, RoundsToADivisionOfThePowerOfTwoWhenAsked) {
  Allocator allocator({.roundup_power2_divisions = 4});
  EXPECT_EQ(allocator.size(take(allocator, 1200)), 1536);  // up to 512 * divisions: plain rounding
  EXPECT_EQ(allocator.size(take(allocator, 4096)), 4096);
  EXPECT_EQ(allocator.size(take(allocator, 4097)), 5120);
  EXPECT_EQ(allocator.size(take(allocator, 7 * 1024 + 1)), 8192);
}

TEST(AllocatorTest, TakesSegmentsOf2And20MebibytesOrOfTheBlocksOwnSize) {
  Allocator allocator;
  take(allocator, 100);
  EXPECT_EQ(allocator.now().reserved, 2 * kMega);
  take(allocator, kMega + 1);
  EXPECT_EQ(allocator.now().reserved, 22 * kMega);
  take(allocator, 21 * kMega + 1);
  EXPECT_EQ(allocator.now().reserved, 22 * kMega + 22 * kMega);
}

TEST(AllocatorTest, HandsOutALargeBlockWholeWhenLessThanAMebibyteWouldRemain) {
  Allocator allocator;
  const auto block = take(allocator, 11 * kMega + 1);
  EXPECT_EQ(allocator.size(block), 12 * kMega);
  EXPECT_EQ(allocator.now().allocated, 12 * kMega);
  EXPECT_EQ(allocator.now().requested, 11 * kMega + 1);
}

TEST(AllocatorTest, TakesTheBestFitAndTheLowestAddressAmongEquals) {
  Allocator allocator;
  std::vector<Allocator::Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(take(allocator, i == 3 ? 2048 : 1024));
  const int64_t lower = allocator.address(blocks[1]);
  const int64_t larger = allocator.address(blocks[3]);
  allocator.free(blocks[5 - 1]);  // merges with nothing: 3 and 5 are in use
  allocator.free(blocks[1]);
  EXPECT_EQ(allocator.address(take(allocator, 1000)), lower);
  allocator.free(blocks[3]);
  EXPECT_EQ(allocator.address(take(allocator, 3000)), larger);  // 2048 and 1024 have become one
}

TEST(AllocatorTest, NeverGivesABlockOfOneStreamToAnother) {
  Allocator allocator;
  const auto block = take(allocator, 5 * kMega, 0);
  allocator.free(block);
  take(allocator, 5 * kMega, 1);
  EXPECT_EQ(allocator.now().reserved, 40 * kMega);
}

TEST(AllocatorTest, KeepsABlockActiveUntilOtherStreamsHaveFinished) {
  Allocator allocator;
  const auto block = take(allocator, 5 * kMega);
  allocator.request_free(block);
  EXPECT_EQ(allocator.now().allocated, 0);
  EXPECT_EQ(allocator.now().active, 5 * kMega);
  const auto other = take(allocator, 5 * kMega);
  EXPECT_NE(allocator.address(other), allocator.address(block));
  allocator.complete_free(block);
  EXPECT_EQ(allocator.now().active, 5 * kMega);
  EXPECT_EQ(allocator.peaks().active, 10 * kMega);
  EXPECT_EQ(allocator.peaks().allocated, 5 * kMega);
}

TEST(AllocatorTest, KeepsOversizeBlocksForOversizeRequests) {
  Allocator allocator({.max_split_size = 100 * kMega});
  allocator.free(take(allocator, 200 * kMega));
  take(allocator, 50 * kMega);
  EXPECT_EQ(allocator.now().reserved, 250 * kMega);
  take(allocator, 190 * kMega);  // within 20 MiB of the free block: it is handed out whole
  EXPECT_EQ(allocator.now().reserved, 250 * kMega);
  EXPECT_EQ(allocator.now().allocated, 250 * kMega);
}

TEST(AllocatorTest, GrowsAnExpandableRangePageByPage) {
  Allocator allocator({.expandable_segments = true});
  const auto first = take(allocator, 30 * kMega);
  EXPECT_EQ(allocator.now().reserved, 40 * kMega);
  const auto second = take(allocator, 30 * kMega);
  EXPECT_EQ(allocator.address(second), allocator.address(first) + 30 * kMega);
  EXPECT_EQ(allocator.now().reserved, 60 * kMega);
  allocator.free(first);
  allocator.free(second);
  take(allocator, 59 * kMega);
  EXPECT_EQ(allocator.now().reserved, 60 * kMega);
  EXPECT_EQ(allocator.now().allocated, 59 * kMega);
}

// Whatever the order of events and the mode: no two blocks overlap, the sums agree, and all comes back.
TEST(AllocatorTest, KeepsItsPromisesOverRandomStreams) {
  for (const bool expandable : {false, true}) {
    Allocator allocator({.expandable_segments = expandable, .capacity = 4096 * kMega});
    base::Random random(7);
    std::map<int64_t, Allocator::Block> by_address;
    int64_t allocated = 0;
    for (int i = 0; i < 4000; ++i) {
      const uint32_t dice = random.bits();
      const int64_t stream = dice % 7 == 0;
      if (dice % 5 < 3) {
        const auto block = allocator.allocate(1 + random.below(dice % 3 ? 3000 : 30 * kMega), stream);
        if (!block) continue;
        const auto next = by_address.lower_bound(allocator.address(*block));
        ASSERT_TRUE(next == by_address.end() || allocator.address(*block) + allocator.size(*block) <= next->first);
        by_address[allocator.address(*block)] = *block;
        allocated += allocator.size(*block);
      } else if (!by_address.empty()) {
        const auto found = std::next(by_address.begin(), dice % by_address.size());
        allocated -= allocator.size(found->second);
        allocator.free(found->second);
        by_address.erase(found);
      }
      ASSERT_EQ(allocator.now().allocated, allocated);
      ASSERT_LE(allocated, allocator.now().reserved);
      ASSERT_LE(allocator.now().reserved, 4096 * kMega);
    }
    for (const auto& [address, block] : by_address) allocator.free(block);
    allocator.empty_cache();
    EXPECT_EQ(allocator.now(), AllocatorPeaks{}) << expandable;
    EXPECT_EQ(allocator.num_segments(), 0);
  }
}

}  // namespace
}  // namespace lockstep::forecast
