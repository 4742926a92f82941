// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/pulse.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep::run {
namespace {

Beat told_by(const Activity& activity) {
  Beat beat;
  activity.write_into(beat);
  return beat;
}

TEST(ActivityTest, TellsPhaseStepAndThatItMoves) {
  Activity activity;
  const Beat before = told_by(activity);
  EXPECT_EQ(before.phase, Phase::loading);
  activity.enter(Phase::computing);
  activity.step_done(7);
  const Beat after = told_by(activity);
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

TEST(PulseTest, BeatsWhileTheTrainingThreadStandsStill) {
  const base::TemporaryFolder folder;
  const auto file = folder.path() / "2.beat";
  Activity activity;
  activity.watch_calls([] { return Calls{"barrier", 5, 4, false}; });
  const Pulse pulse(file, "world", 2, activity);
  const Beat first = read_beat(file).value();
  EXPECT_EQ(first.world, "world");
  EXPECT_EQ(first.rank, 2);
  EXPECT_EQ(first.call, "barrier");
  EXPECT_EQ(first.calls, 5);
  EXPECT_EQ(first.answered, 4);
  Beat second = first;
  for (int i = 0; i < 1000 && second.beats == first.beats; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    second = read_beat(file).value();
  }
  EXPECT_GT(second.beats, first.beats);
  EXPECT_EQ(second.moves, first.moves);
}

TEST(PulseTest, TheLastBeatTellsTheEnd) {
  const base::TemporaryFolder folder;
  const auto file = folder.path() / "0.beat";
  Activity activity;
  {
    const Pulse pulse(file, "world", 0, activity);
    activity.step_done(99);
  }
  EXPECT_EQ(read_beat(file).value().step, 99);
}

TEST(PulseTest, AFolderThatWasRemovedCostsNothing) {
  Activity activity;
  Pulse pulse("/nonexistent/0.beat", "world", 0, activity);
  pulse.beat_now();
  EXPECT_EQ(read_beat("/nonexistent/0.beat"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::run
