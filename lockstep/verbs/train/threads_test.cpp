// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/threads.h"

#include <gtest/gtest.h>

namespace lockstep::verbs {

TEST(ThreadsTest, TheJobDecidesElseTheCores) {
  spec::Training training;
  training.threads = 3;
  EXPECT_EQ(compute_threads(training), 3);
  EXPECT_GE(compute_threads({}), 1);
}

TEST(ThreadsTest, ARankAloneKeepsItsOwn) {
  const auto group = comm::single_group();
  EXPECT_EQ(agree_on_threads(5, *group), 5);
}

}  // namespace lockstep::verbs
