// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/address_space.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

TEST(AddressSpaceTest, PutsEachNewRegionBelowTheLastIn32MebibyteSteps) {
  AddressSpace space;
  const int64_t first = space.take(98 * kMebi);
  EXPECT_EQ(space.take(98 * kMebi), first - 128 * kMebi);
  EXPECT_EQ(space.take(196 * kMebi), first - (128 + 224) * kMebi);
}

TEST(AddressSpaceTest, FillsTheLowestHoleThatFitsFromItsLowEnd) {
  AddressSpace space;
  const int64_t upper = space.take(98 * kMebi);
  const int64_t lower = space.take(98 * kMebi);
  EXPECT_EQ(space.take(2 * kMebi), lower + 98 * kMebi);
  EXPECT_EQ(space.take(26 * kMebi), lower + 100 * kMebi);
  EXPECT_EQ(space.take(26 * kMebi), upper + 98 * kMebi);
}

TEST(AddressSpaceTest, JoinsWhatComesBackWithTheHolesBesideIt) {
  AddressSpace space;
  const int64_t region = space.take(20 * kMebi);
  const int64_t small = space.take(2 * kMebi);
  ASSERT_EQ(small, region + 20 * kMebi);
  space.give(region, 20 * kMebi);
  space.give(small, 2 * kMebi);
  EXPECT_EQ(space.take(32 * kMebi), region);
}

TEST(AddressSpaceTest, IgnoresAnAddressThatItNeverGave) {
  AddressSpace space;
  const int64_t region = space.take(32 * kMebi);
  space.give(region + 2 * kMebi, 2 * kMebi);
  EXPECT_EQ(space.take(2 * kMebi), region - 32 * kMebi);
}

}  // namespace
}  // namespace lockstep::forecast
