// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::tune {
namespace {

Trial trial_of(TrialState state, double spent, double planned, const char* worker = "w") {
  Trial trial;
  trial.state = state;
  if (spent > 0) trial.user_attrs[kSpentAttr] = spent;
  if (planned > 0) trial.user_attrs[kPlannedAttr] = planned;
  trial.system_attrs[kWorkerAttr] = worker;
  return trial;
}

TEST(StudyBudgetTest, IsTheSmallerOfNodeHoursAndMoney) {
  spec::Study study;
  EXPECT_TRUE(std::isinf(budget_of(study)));
  study.budget.node_hours = 40;
  EXPECT_EQ(budget_of(study), 40);
  study.budget.money = 60;
  study.budget.price = 3;
  EXPECT_EQ(budget_of(study), 20);
}

TEST(StudyBudgetTest, ATrialUnderWayCostsWhatItIsPlannedTo) {
  Totals totals;
  totals.add(trial_of(TrialState::complete, 2, 3));
  totals.add(trial_of(TrialState::pruned, 1, 3));
  EXPECT_EQ(totals.node_hours, 3);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::running, 0, 5)), 5);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::running, 2, 5)), 3);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::running, 7, 5)), 0);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::running, 0, 0)), 1.5);  // the mean
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::complete, 2, 5)), 0);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::waiting, 0, 5)), 0);
  EXPECT_EQ(totals.promised_to(trial_of(TrialState::running, 1, 5, "")), 0);
  Trial paused = trial_of(TrialState::running, 1, 5);
  paused.system_attrs[kPausedAttr] = true;
  EXPECT_EQ(totals.promised_to(paused), 0);
}

}  // namespace
}  // namespace lockstep::tune
