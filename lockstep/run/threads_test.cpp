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

TEST(ThreadsTest, CoresThatOthersKeepBusyAreLeftToThem) {
  EXPECT_EQ(threads_beside(2, 0, 1), 2);
  EXPECT_EQ(threads_beside(2, 0.4, 1), 2);  // somebody looked in
  EXPECT_EQ(threads_beside(2, 1, 1), 1);
  EXPECT_EQ(threads_beside(2, 2, 1), 1);  // none is free, and nobody computes with none
  EXPECT_EQ(threads_beside(64, 16.2, 1), 48);
  EXPECT_EQ(threads_beside(64, 16, 4), 12);
  EXPECT_EQ(threads_beside(5, 0, 2), 2);  // never more than the share
}

TEST(ThreadsTest, SaysWhyThereAreFewerAndObeysTheJob) {
  const ThreadChoice crowded = choose_threads({}, 8, 5, 1);
  EXPECT_EQ(crowded.threads, 3);
  EXPECT_EQ(crowded.why,
            "5.0 of 8 cores are busy with other processes: computing with 3 threads, not 8 (training.threads decides "
            "otherwise)");
  const ThreadChoice alone = choose_threads({}, 8, 0.2, 2);
  EXPECT_EQ(alone.threads, 4);
  EXPECT_EQ(alone.why, "");
  spec::Training stated;
  stated.threads = 8;
  EXPECT_EQ(choose_threads(stated, 8, 8, 1).threads, 8);
  EXPECT_EQ(choose_threads(stated, 8, 8, 1).why, "");
}

}  // namespace lockstep::run
