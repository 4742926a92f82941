// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/training_state.h"

#include <gtest/gtest.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::training {
namespace {

using base::Json;

// No member has the value of a fresh one, nor that of another.
task::ScoreSummary summary_of(double top1) {
  return {{"top1", top1, true, "top-1"}, base::parse_json(R"({"loss": 1.25, "loss_cut": 1})", "figures")};
}

TrainingState well_travelled() {
  TrainingState state;
  state.step = 90;
  state.seconds = {.before = 1000, .started = base::steady_seconds()};
  state.step_seconds = 0.25;
  state.save_seconds = 3.5;
  state.evaluate_seconds = 7.5;
  state.evaluated = 80;
  state.data_shift = 11;
  state.rewinds = 2;
  state.rewound_from = 95;
  state.rewound_to = 84;
  state.nonfinite = 1;
  state.spikes = SpikeDetector(4);
  state.spikes.check(2.5, 0.5);
  state.bad_files = {"a.jpg", "b.jpg"};
  state.scores = {.best = 0.75, .last = summary_of(0.5)};
  state.patience = {.best = 0.625, .without = 3};
  state.threads = 6;
  state.ranks = 3;
  return state;
}

Json written(const TrainingState& state) {
  Json saved = Json::object();
  state.write(saved);
  return saved;
}

TEST(TrainingStateTest, WhatIsSavedIsResumed) {
  const TrainingState state = well_travelled();
  const Json saved = written(state);
  TrainingState resumed;
  resumed.spikes = SpikeDetector(4);
  resumed.resume(saved);
  EXPECT_NEAR(resumed.seconds.before, 1000, 60);
  resumed.seconds = state.seconds;
  EXPECT_EQ(resumed, state);
}

TEST(TrainingStateTest, EveryMemberIsSaved) {
  std::vector<std::string> keys;
  const Json saved = written(well_travelled());
  for (const auto& member : saved.members()) keys.push_back(member.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"step", "seconds", "step_seconds", "save_seconds", "evaluate_seconds",
                                            "evaluated", "data_shift", "rewinds", "rewound_from", "rewound_to",
                                            "nonfinite", "spikes", "bad_samples", "best", "evaluation", "patience_best",
                                            "evaluations_without_better", "threads", "ranks"}));
  const Json fresh = written({});
  for (const char* key : {"spikes", "best", "evaluation", "patience_best"}) EXPECT_FALSE(fresh.contains(key)) << key;
}

TEST(TrainingStateTest, ARewindTakesBackWhatTheStepsDidAndKeepsWhatItHasLearnt) {
  TrainingState earlier;
  earlier.step = 84;
  earlier.evaluated = 81;
  earlier.spikes = SpikeDetector(4);
  earlier.spikes.check(1, 1);
  earlier.bad_files = {"a.jpg"};
  earlier.scores = {.best = 0.25, .last = summary_of(0.25)};
  TrainingState expected = well_travelled();
  TrainingState state = expected;
  state.rewind(written(earlier));
  expected.step = 84;
  expected.evaluated = 81;
  expected.scores = earlier.scores;
  expected.patience = earlier.patience;
  expected.nonfinite = 0;
  expected.spikes.forget();
  EXPECT_EQ(state, expected);
}

TEST(TrainingStateTest, AnEarlierVersionsStateOwesNoEvaluation) {
  const Json saved = base::parse_json(R"({"step": 7, "seconds": 12})", "state.json");
  TrainingState state;
  state.resume(saved);
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.evaluated, 7);
  EXPECT_EQ(state.seconds.before, 12);
  EXPECT_EQ(state.save_seconds, TrainingState().save_seconds);
  state = well_travelled();
  state.rewind(saved);
  EXPECT_EQ(state.evaluated, 7);
  EXPECT_FALSE(state.scores.best.has_value());
}

TEST(TrainingStateTest, PatienceCountsEvaluationsThatAreNotBetterByMoreThanTheMargin) {
  Patience patience;
  const auto headline = [](double value, bool higher) { return task::Headline{"x", value, higher, ""}; };
  patience.add(headline(0.5, true), true, 0.1);
  EXPECT_EQ(patience.best, 0.5);
  patience.add(headline(0.55, true), true, 0.1);
  EXPECT_EQ(patience.without, 1);
  EXPECT_EQ(patience.best, 0.5);
  patience.add(headline(0.9, true), false, 0.1);  // not one finite figure
  EXPECT_EQ(patience.without, 2);
  patience.add(headline(0.7, true), true, 0.1);
  EXPECT_EQ(patience.without, 0);
  Patience lower;
  lower.add(headline(2, false), true, 0.1);
  lower.add(headline(1.95, false), true, 0.1);
  EXPECT_EQ(lower.without, 1);
  lower.add(headline(1.5, false), true, 0.1);
  EXPECT_EQ(lower.without, 0);
}

TEST(TrainingStateTest, AStateWithoutAStepIsNone) {
  TrainingState state;
  EXPECT_THROW(state.resume(Json::object()), base::Error);
  EXPECT_THROW(state.rewind(Json::object()), base::Error);
}

}  // namespace
}  // namespace lockstep::training
