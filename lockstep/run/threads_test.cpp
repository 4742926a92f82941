// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/threads.h"

#include <gtest/gtest.h>

namespace lockstep::run {

TEST(ThreadsTest, TheJobDecidesElseTheCores) {
  spec::Training training;
  training.threads = 3;
  EXPECT_EQ(compute_threads(training), 3);
  EXPECT_GE(compute_threads({}), 1);
  EXPECT_EQ(compute_threads({}, 16, 5), 3);
  EXPECT_EQ(compute_threads({}, 2, 5), 1);
}

}  // namespace lockstep::run
