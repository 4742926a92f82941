// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/pruner.h"

#include <gtest/gtest.h>

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

TEST(PrunerTest, AshaLetsOneInFourGoOnAtEachRung) {
  spec::Study study;
  study.scheduler = spec::StudyScheduler::asha;
  auto trials = curves({{0.1}, {0.5}, {0.3}, {0.2}, {0.6}, {0.05}, {0.15}, {0.4}}, TrialState::running);
  const auto stops = [&](size_t i) { return judge(study, trials, trials[i], true).stop; };
  EXPECT_FALSE(stops(4));
  EXPECT_FALSE(stops(1));
  EXPECT_TRUE(stops(7));
  trials[7].intermediate[2] = 0.4;  // it was judged at rung 1 before; the next is 4
  EXPECT_FALSE(stops(7));
  EXPECT_TRUE(judge(study, trials, trials[7], true).rungs.empty());
  trials[7].intermediate[4] = 0.4;
  EXPECT_EQ(judge(study, trials, trials[7], true).rungs, std::vector<int64_t>{1});
  EXPECT_FALSE(stops(7));  // the only one there
}

}  // namespace
}  // namespace lockstep::tune
