// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/random.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(PhiloxTest, MatchesThePublishedVectors) {  // Random123's known answers for philox4x32-10
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, DependsOnSeedStreamAndIndexOnly) {
  EXPECT_EQ(Random(1, 2, 3).bits64(), Random(1, 2, 3).bits64());
  std::set<uint64_t> drawn;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint32_t stream = 0; stream < 4; ++stream) {
      for (uint64_t index = 0; index < 4; ++index) drawn.insert(Random(seed, stream, index << 32 | index).bits64());
    }
  }
  EXPECT_EQ(drawn.size(), 64u);
}

TEST(RandomTest, UniformFillsTheIntervalEvenly) {
  Random random(7);
  int64_t counts[10] = {};
  for (int i = 0; i < 100000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ++counts[static_cast<int>(value * 10)];
  }
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 10000, 400);
}

TEST(RandomTest, BelowStaysBelowAndReachesEveryValue) {
  Random random(7);
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(random.below(1), 0);
  EXPECT_THROW(random.below(0), Error);
}

TEST(RandomTest, NormalHasMeanZeroAndDeviationOne) {
  Random random(11);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
}

TEST(RandomTest, ChanceFollowsItsProbability) {
  Random random(13);
  int hits = 0;
  for (int i = 0; i < 10000; ++i) hits += random.chance(0.3) ? 1 : 0;
  EXPECT_NEAR(hits, 3000, 200);
}

TEST(RandomTest, PurposesHaveSeedsOfTheirOwn) {
  EXPECT_NE(derive_seed(1, "order"), derive_seed(1, "augment"));
  EXPECT_NE(derive_seed(1, "order"), derive_seed(2, "order"));
  EXPECT_EQ(derive_seed(1, "order"), derive_seed(1, "order"));
}

}  // namespace
}  // namespace lockstep::base
