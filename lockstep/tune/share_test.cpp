// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/share.h"

#include <gtest/gtest.h>

namespace lockstep::tune {
namespace {

TEST(ShareTest, EveryCoreAndGpuIsOneTrials) {
  const auto shares = share_out(3, 2, {0, 1, 2, 3, 8, 9, 10}, {"0", "1", "2", "3", "4", "5"});
  EXPECT_EQ(shares[0], (Share{{0, 1}, {"0", "1"}}));
  EXPECT_EQ(shares[1], (Share{{2, 3}, {"2", "3"}}));
  EXPECT_EQ(shares[2], (Share{{8, 9, 10}, {"4", "5"}}));
  EXPECT_TRUE(share_out(4, 1, {0, 1}, {})[3].cores.empty());
  EXPECT_FALSE(own_cores().empty());
}

}  // namespace
}  // namespace lockstep::tune
