// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::training {
namespace {

TEST(StopTest, ARankThatIsAskedSaysWhyAndAllFollow) {
  std::string wanted[3], reasons[3];
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    TrainOptions options;
    options.stop = [&] { return std::string(group.rank() == 1 ? "SIGTERM" : ""); };
    Stop stop(options, group);
    EXPECT_FALSE(stop.is_set());
    wanted[group.rank()] = stop.wanted({});
    stop.agree(wanted[group.rank()]);
    reasons[group.rank()] = stop.reason();
  });
  EXPECT_THAT(wanted, testing::ElementsAre("", "SIGTERM", ""));
  EXPECT_THAT(reasons, testing::Each("SIGTERM on rank 1"));
}

TEST(StopTest, TheWalltimeIsEverybodysReason) {
  std::string reasons[2];
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainOptions options;
    options.seconds_left = group.rank() == 1 ? 0 : 1000;
    Stop stop(options, group);
    stop.agree(stop.wanted({.save = 1, .step = 1}));
    reasons[group.rank()] = stop.reason();
  });
  EXPECT_THAT(reasons, testing::Each("walltime"));
}

TEST(StopTest, OfRankZeroMayBeNone) {
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    const TrainOptions options;
    Stop stop(options, group);
    stop.follow(group.rank() == 1 ? "not asked" : "");
    EXPECT_FALSE(stop.is_set());
    stop.follow(group.rank() == 0 ? "walltime" : "");
    EXPECT_EQ(stop.reason(), "walltime");
  });
}

TEST(StopTest, WhatWasAskedForIsOverdueAfterAWhile) {
  std::string asked;
  TrainOptions options;
  options.stop = [&] { return asked; };
  const auto group = comm::single_group();
  const Stop stop(options, *group);
  EXPECT_FALSE(stop.is_overdue(100));
  asked = "SIGTERM";
  EXPECT_FALSE(stop.is_overdue(200));
  EXPECT_FALSE(stop.is_overdue(202));
  EXPECT_TRUE(stop.is_overdue(203));
  comm::run_thread_ranks(2, [&](comm::Group& two) {  // of several, none can stop without the others
    const Stop of_one(options, two);
    EXPECT_FALSE(of_one.is_overdue(200));
    EXPECT_FALSE(of_one.is_overdue(250));
    EXPECT_TRUE(of_one.is_overdue_at_start(203));
    EXPECT_TRUE(of_one.is_overdue(260));
  });
}

TEST(StopTest, KeepsTheTimeOfASaveAndAnEvaluation) {
  const auto group = comm::single_group();
  TrainOptions options;
  const Stop unlimited(options, *group);
  EXPECT_TRUE(unlimited.has_time_for(1e9));
  EXPECT_EQ(unlimited.wanted({.save = 1e9}), "");
  EXPECT_EQ(unlimited.check_start({.save = 1e9}), "");
  options.seconds_left = 600;
  const Stop stop(options, *group);
  EXPECT_TRUE(stop.has_time_for(500));
  EXPECT_FALSE(stop.has_time_for(601));
  EXPECT_EQ(stop.wanted({.save = 1, .step = 1}), "");
  EXPECT_EQ(stop.wanted({.save = 1, .step = 1, .evaluation = 600}), "walltime");
}

TEST(StopTest, ASessionThatCannotSaveOneStepIsRefusedAndARestartedOneStops) {
  const auto group = comm::single_group();
  TrainOptions options;
  options.seconds_left = 10;
  options.seconds_passed = 20;
  const Stop stop(options, *group);
  EXPECT_EQ(stop.check_start({.save = 0.1, .step = 0.1}), "");
  try {
    stop.check_start({.save = 100, .step = 1});
    FAIL() << "began";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("the walltime is too short: 30 s from the start of lockstep"));
  }
  options.restarted = true;
  EXPECT_EQ(stop.check_start({.save = 100, .step = 1}), "walltime");
}

}  // namespace
}  // namespace lockstep::training
