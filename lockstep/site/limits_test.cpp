// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lockstep::site {
namespace {

TEST(LimitsTest, TellsInForceFromPossible) {
  const Limit limit{.soft = 1024, .hard = 4096};
  EXPECT_TRUE(limit.allows(1024));
  EXPECT_FALSE(limit.allows(1025));
  EXPECT_TRUE(limit.can_allow(4096));
  EXPECT_FALSE(limit.can_allow(4097));
  EXPECT_TRUE(Limit{}.allows(uint64_t{1} << 60));
}

TEST(LimitsTest, ReadsWhatTheKernelEnforces) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(read_limits().open_files.soft, 200u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace lockstep::site
