// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/rank_times.h"

#include <gtest/gtest.h>

#include <mutex>

namespace lockstep::training {
namespace {

TEST(RankTimesTest, NamesTheRankThatTheOthersWaitFor) {
  std::mutex one_at_a_time;
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    RankTimes times;
    for (int step = 0; step < 2; ++step) {
      const bool slow = group.rank() == 1;
      times.step({.seconds = 0.5, .data = slow ? 0.25 : 0.125, .communication = slow ? 0 : 0.25});
    }
    const auto fields = times.gather(group, group.rank() == 1 ? "node7" : "node1");
    const std::lock_guard lock(one_at_a_time);
    ASSERT_TRUE(fields);
    EXPECT_EQ(fields->at("steps").as_int(), 2);
    EXPECT_EQ(fields->at("ranks").as_int(), 3);
    EXPECT_EQ(fields->at("slowest").at("rank").as_int(), 1);
    EXPECT_EQ(fields->at("slowest").at("host").as_string(), "node7");
    EXPECT_DOUBLE_EQ(fields->at("slowest").at("own").as_double(), 1);
    EXPECT_DOUBLE_EQ(fields->at("median").at("own").as_double(), 0.5);
    EXPECT_FALSE(times.gather(group, "x"));  // nothing since then
  });
}

TEST(RankTimesTest, ASingleRankHasNobodyToWaitFor) {
  const auto group = comm::single_group();
  RankTimes times;
  times.step({.seconds = 1});
  EXPECT_FALSE(times.gather(*group, "here"));
}

TEST(RankTimesTest, IsDueEarlyInASessionAndEveryHundredSteps) {
  EXPECT_TRUE(RankTimes::is_due(10, 0));
  EXPECT_TRUE(RankTimes::is_due(65, 55));
  EXPECT_TRUE(RankTimes::is_due(200, 55));
  EXPECT_FALSE(RankTimes::is_due(64, 55));
}

}  // namespace
}  // namespace lockstep::training
