// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/feature_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

TEST(FeatureNeedsTest, RefusesMoreThanANodeHasAndNamesTheBytes) {
  const FeatureNeeds needs{"layer4", 1'281'167, 512 * 7 * 7 * 4};
  check_feature_memory(needs, 4, 4 * needs.bytes());
  try {
    check_feature_memory(needs, 4, int64_t{256} << 30);
    FAIL() << "four ranks cannot keep that much";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("before block 'layer4' take 514 GB"));
    EXPECT_THAT(error.what(), testing::HasSubstr("on each of 4 ranks"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("cache_features"));
  }
}

}  // namespace
}  // namespace lockstep::run
