// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/agreed_threads.h"

#include <gtest/gtest.h>

namespace lockstep::training {

TEST(AgreedThreadsTest, ARankAloneKeepsItsOwn) {
  const auto group = comm::single_group();
  EXPECT_EQ(agree_on_threads(5, *group), 5);
}

}  // namespace lockstep::training
