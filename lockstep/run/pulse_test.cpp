// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/pulse.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep::run {
namespace {

Heartbeat told_by(const Activity& activity) {
  Heartbeat heartbeat;
  activity.write_into(heartbeat);
  return heartbeat;
}

TEST(ActivityTest, TellsPhaseStepAndThatItMoves) {
  Activity activity;
  const Heartbeat before = told_by(activity);
  EXPECT_EQ(before.phase, Phase::loading);
  activity.enter(Phase::computing);
  activity.step_done(7);
  const Heartbeat after = told_by(activity);
  EXPECT_EQ(after.phase, Phase::computing);
  EXPECT_EQ(after.step, 7);
  EXPECT_GT(after.moves, before.moves);
}

TEST(ActivityTest, RemembersTheLongestEarlierStayInAPhase) {
  Activity activity;
  activity.enter(Phase::saving);
  EXPECT_EQ(told_by(activity).longest, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  activity.enter(Phase::computing);
  EXPECT_EQ(told_by(activity).longest, 0);
  activity.enter(Phase::saving);
  EXPECT_GE(told_by(activity).longest, 0.02);
}

TEST(ActivityTest, AScopeGoesBackToThePhaseBefore) {
  Activity activity;
  activity.enter(Phase::computing);
  {
    const Activity::During saving(activity, Phase::saving);
    EXPECT_EQ(told_by(activity).phase, Phase::saving);
  }
  EXPECT_EQ(told_by(activity).phase, Phase::computing);
}

TEST(PulseTest, WritesWhileTheTrainingThreadStandsStill) {
  const base::TemporaryFolder folder;
  const auto file = folder.path() / "2.heartbeat";
  Activity activity;
  activity.watch_calls([] { return Calls{"barrier", 5, 4, false}; });
  const Pulse pulse(file, "world", 2, activity);
  const Heartbeat first = read_heartbeat(file).value();
  EXPECT_EQ(first.world, "world");
  EXPECT_EQ(first.rank, 2);
  EXPECT_EQ(first.call, "barrier");
  EXPECT_EQ(first.calls, 5);
  EXPECT_EQ(first.answered, 4);
  Heartbeat second = first;
  for (int i = 0; i < 1000 && second.count == first.count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    second = read_heartbeat(file).value();
  }
  EXPECT_GT(second.count, first.count);
  EXPECT_EQ(second.moves, first.moves);
}

TEST(PulseTest, TheLastHeartbeatTellsTheEnd) {
  const base::TemporaryFolder folder;
  const auto file = folder.path() / "0.heartbeat";
  Activity activity;
  {
    const Pulse pulse(file, "world", 0, activity);
    activity.step_done(99);
  }
  EXPECT_EQ(read_heartbeat(file).value().step, 99);
}

TEST(PulseTest, AFolderThatWasRemovedCostsNothing) {
  Activity activity;
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "absent" / "0.heartbeat";
  Pulse pulse(file, "world", 0, activity);
  pulse.write_now();
  EXPECT_EQ(read_heartbeat(file), std::nullopt);
}

}  // namespace
}  // namespace lockstep::run
