// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/pruner.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::tune {
namespace {

std::vector<Trial> curves(const std::vector<std::vector<double>>& values, TrialState state) {
  std::vector<Trial> trials;
  for (const auto& curve : values) {
    Trial trial;
    trial.id = trial.number = static_cast<int64_t>(trials.size());
    trial.state = state;
    for (size_t i = 0; i < curve.size(); ++i) trial.intermediate[static_cast<int64_t>(i) + 1] = curve[i];
    trials.push_back(trial);
  }
  return trials;
}

TEST(PrunerTest, TheMedianStopsWhatIsWorseThanHalf) {
  spec::Study study;
  study.scheduler = spec::StudyScheduler::median;
  study.startup = 3;
  auto trials = curves({{0.5, 0.7}, {0.4, 0.6}, {0.6, 0.9}}, TrialState::complete);
  trials.push_back(curves({{0.45, 0.65}}, TrialState::running)[0]);
  trials.back().id = 3;
  EXPECT_TRUE(judge(study, trials, trials.back(), true).stop);
  EXPECT_FALSE(judge(study, trials, trials.back(), false).stop);  // 0.45 is better than 0.7 when less is better
  study.startup = 4;
  EXPECT_FALSE(judge(study, trials, trials.back(), true).stop);
}

spec::Study asha_study() {
  spec::Study study;
  study.scheduler = spec::StudyScheduler::asha;
  return study;
}

void pause(Trial& trial) {
  trial.system_attrs[kPausedAttr] = true;
  trial.system_attrs[kWorkerAttr] = "";
}

TEST(PrunerTest, AshaLetsOneInFourGoOnAtEachRung) {
  const spec::Study study = asha_study();
  auto trials = curves({{0.1}, {0.5}, {0.3}, {0.2}, {0.6}, {0.05}, {0.5}, {0.4}}, TrialState::running);
  const auto stops = [&](size_t i) { return judge(study, trials, trials[i], true).stop; };
  EXPECT_FALSE(stops(4));
  EXPECT_FALSE(stops(1));
  EXPECT_TRUE(stops(6));  // as good, and later
  EXPECT_TRUE(stops(7));
  trials[7].intermediate[2] = 0.4;  // it was judged at rung 1 before; the next is 4
  EXPECT_FALSE(stops(7));
  EXPECT_TRUE(judge(study, trials, trials[7], true).rungs.empty());
  trials[7].intermediate[4] = 0.4;
  EXPECT_EQ(judge(study, trials, trials[7], true).rungs, std::vector<int64_t>{1});
  EXPECT_TRUE(stops(7));  // the best of one is not the best of four
  EXPECT_FALSE(judge(study, trials, trials[7], true, 1).stop);
}

TEST(PrunerTest, PromotesWhatIsAmongTheBestOfItsRungByNow) {
  const spec::Study study = asha_study();
  auto trials = curves({{0.3}, {0.2}, {0.1}}, TrialState::running);
  for (auto& trial : trials) pause(trial);
  EXPECT_EQ(promotable(study, trials, true, 0), nullptr);  // three are too few
  EXPECT_EQ(promotable(study, trials, true, 1), &trials[0]);
  trials.push_back(trials[2]);
  trials[3].id = trials[3].number = 3;
  EXPECT_EQ(promotable(study, trials, true, 0), &trials[0]);
  EXPECT_EQ(promotable(study, trials, false, 0), &trials[2]);  // of equal ones the earlier
  trials[0].system_attrs[kWorkerAttr] = "w";                   // still saves
  EXPECT_EQ(promotable(study, trials, true, 0), nullptr);
  trials[0].system_attrs[kPausedAttr] = false;  // promoted
  EXPECT_EQ(promotable(study, trials, true, 0), nullptr);
  EXPECT_EQ(promotable(study, trials, true, 1), nullptr);  // the best has gone on
  spec::Study other = study;
  other.scheduler = spec::StudyScheduler::median;
  EXPECT_EQ(promotable(other, trials, false, 1), nullptr);
}

TEST(PrunerTest, PromotesFromTheFurthestRungDown) {
  const spec::Study study = asha_study();
  auto trials = curves({{0.6, 0.6, 0.6, 0.6},
                        {0.7, 0.7, 0.7, 0.7},
                        {0.8, 0.8, 0.8, 0.8},
                        {0.7, 0.9, 0.7, 0.7, 0.7},  // its best counts
                        {0.95},
                        {0.1},
                        {0.1},
                        {0.1}},
                       TrialState::running);
  for (auto& trial : trials) pause(trial);
  EXPECT_EQ(promotable(study, trials, true, 0), &trials[3]);
  trials[3].state = TrialState::complete;
  EXPECT_EQ(promotable(study, trials, true, 0), &trials[4]);
  trials[4].state = TrialState::failed;
  EXPECT_EQ(promotable(study, trials, true, 0), nullptr);  // the best two have left rung 1
}

TEST(PrunerTest, WhatHasDivergedIsNotPromoted) {
  auto trials = curves({{std::nan("")}}, TrialState::running);
  pause(trials[0]);
  EXPECT_EQ(promotable(asha_study(), trials, true, 1), nullptr);
}

}  // namespace
}  // namespace lockstep::tune
