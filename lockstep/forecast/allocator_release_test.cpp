// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/forecast/allocator.h"

namespace lockstep::forecast {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;

TEST(AllocatorReleaseTest, GivesBackOnlySegmentsThatAreWhollyFree) {
  Allocator allocator;
  const auto kept = *allocator.allocate(2 * kMi);
  const auto freed = *allocator.allocate(40 * kMi);
  allocator.free(freed);
  allocator.empty_cache();
  EXPECT_EQ(allocator.now().reserved, 20 * kMi);
  allocator.free(kept);
  allocator.empty_cache();
  EXPECT_EQ(allocator.now().reserved, 0);
}

TEST(AllocatorReleaseTest, ReleasesTheCacheWhenTheGpuIsFullAndTriesAgain) {
  Allocator allocator({.capacity = 100 * kMi});
  allocator.free(*allocator.allocate(60 * kMi));
  EXPECT_TRUE(allocator.allocate(80 * kMi).has_value());
  EXPECT_EQ(allocator.num_retries(), 1);
  EXPECT_EQ(allocator.now().reserved, 80 * kMi);
  EXPECT_FALSE(allocator.allocate(30 * kMi).has_value());
}

TEST(AllocatorReleaseTest, HoldsToAMemoryFraction) {
  Allocator allocator({.allowed = 50 * kMi, .capacity = 100 * kMi});
  EXPECT_TRUE(allocator.allocate(40 * kMi).has_value());
  EXPECT_FALSE(allocator.allocate(12 * kMi).has_value());
}

TEST(AllocatorReleaseTest, UnmapsTheWholePagesInsideAFreeBlock) {
  Allocator allocator({.expandable_segments = true});
  const auto low = *allocator.allocate(30 * kMi);
  const auto middle = *allocator.allocate(50 * kMi);  // 30 .. 80: the page 40 .. 60 and 60 .. 80 lie inside
  const auto high = *allocator.allocate(30 * kMi);
  EXPECT_EQ(allocator.now().reserved, 120 * kMi);
  allocator.free(middle);
  allocator.empty_cache();
  EXPECT_EQ(allocator.now().reserved, 80 * kMi);
  EXPECT_EQ(allocator.address(*allocator.allocate(45 * kMi)), allocator.address(low) + 30 * kMi);  // mapped again
  EXPECT_EQ(allocator.now().reserved, 120 * kMi);
  allocator.free(low);
  allocator.free(high);
}

TEST(AllocatorReleaseTest, ReleasesOneOversizeBlockBeforeEverything) {
  Allocator allocator({.max_split_size = 50 * kMi, .capacity = 200 * kMi});
  const auto small = *allocator.allocate(30 * kMi);
  const auto large = *allocator.allocate(160 * kMi);
  allocator.free(small);
  allocator.free(large);
  EXPECT_TRUE(allocator.allocate(60 * kMi).has_value());
  EXPECT_EQ(allocator.now().reserved, 90 * kMi);  // the 30 MiB segment stayed
  EXPECT_EQ(allocator.num_retries(), 0);
}

TEST(AllocatorReleaseTest, CollectsOldBlocksAboveTheThreshold) {
  Allocator allocator({.garbage_collection_threshold = 0.5, .allowed = 200 * kMi});
  const auto old = *allocator.allocate(90 * kMi);
  allocator.free(old);
  for (int i = 0; i < 4; ++i) allocator.free(*allocator.allocate(100));
  const auto young = *allocator.allocate(40 * kMi);  // a part of the old segment
  allocator.free(young);
  const auto other = *allocator.allocate(100 * kMi);
  EXPECT_EQ(allocator.now().reserved, 192 * kMi);
  allocator.free(other);
  EXPECT_TRUE(allocator.allocate(120 * kMi).has_value());
  EXPECT_EQ(allocator.now().reserved, 122 * kMi);  // both went, though nothing had failed yet
  EXPECT_EQ(allocator.num_retries(), 0);
}

TEST(AllocatorReleaseTest, StartsFromTheStateOfARunningProcess) {
  Allocator allocator;
  allocator.preset_segment(int64_t{1} << 40, 20 * kMi, 0, false);
  const auto block = allocator.preset_block((int64_t{1} << 40) + 4 * kMi, 6 * kMi);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(allocator.now().allocated, 6 * kMi);
  EXPECT_FALSE(allocator.preset_block((int64_t{1} << 40) + 5 * kMi, kMi).has_value());
  EXPECT_EQ(allocator.address(*allocator.allocate(4 * kMi)), int64_t{1} << 40);
  EXPECT_FALSE(allocator.release_segment(int64_t{1} << 40, 20 * kMi));
  EXPECT_EQ(allocator.now().reserved, 20 * kMi);
}

}  // namespace
}  // namespace lockstep::forecast
