// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/batch_norm_rule.h"

#include <gtest/gtest.h>

namespace lockstep::step {
namespace {

spec::Training training_with(spec::BatchNorm norm) {
  spec::Training training;
  training.batch_norm = norm;
  training.ghost_batch = norm == spec::BatchNorm::ghost ? 2 : 0;
  return training;
}

TEST(BatchNormRuleTest, OneRankHasNobodyToShareWith) {
  const auto group = comm::single_group();
  EXPECT_FALSE(batch_norm_rule(training_with(spec::BatchNorm::local), *group));
  EXPECT_FALSE(batch_norm_rule(training_with(spec::BatchNorm::sync), *group));
  EXPECT_TRUE(batch_norm_rule(training_with(spec::BatchNorm::ghost), *group));
}

TEST(BatchNormRuleTest, OnlySyncMakesRanksPassTogether) {
  const auto groups = comm::thread_groups(2);
  EXPECT_FALSE(passes_together(training_with(spec::BatchNorm::local), *groups[0]));
  EXPECT_TRUE(passes_together(training_with(spec::BatchNorm::sync), *groups[0]));
  EXPECT_FALSE(passes_together(training_with(spec::BatchNorm::ghost), *groups[0]));
  EXPECT_TRUE(batch_norm_rule(training_with(spec::BatchNorm::sync), *groups[0]));
}

}  // namespace
}  // namespace lockstep::step
