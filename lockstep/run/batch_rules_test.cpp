// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/batch_rules.h"

#include <gtest/gtest.h>

namespace lockstep::run {
namespace {

TEST(BatchRulesTest, TellsTheSmallerSlices) {
  spec::Training training;
  training.batch_norm = spec::BatchNorm::ghost;
  training.ghost_batch = 16;
  training.global_batch = 64;
  EXPECT_EQ(batch_rule_lines(training, 3).back(),
            "batch norm: statistics of 16 samples (ghost); what is left of a rank's share makes slices of 6, 5");
  EXPECT_EQ(batch_rule_lines(training, 4).back(), "batch norm: statistics of 16 samples (ghost)");
}

TEST(BatchRulesTest, SaysWhatTheRulesComeTo) {
  spec::Training training;
  EXPECT_TRUE(batch_rule_lines(training, 2).empty());
  training.global_batch = 512;
  training.schedule.scale = spec::RateRule::linear;
  training.schedule.base_batch = 128;
  training.batch_norm = spec::BatchNorm::sync;
  training.micro_batch = 64;
  training.reduce_precision = spec::ReducePrecision::bf16;
  EXPECT_EQ(batch_rule_lines(training, 2),
            (std::vector<std::string>{"learning rate 0.4 = 0.1 x 512 / 128 (linear rule)",
                                      "batch norm: statistics of 128 samples, over 2 ranks (sync)",
                                      "gradients: added up in bf16, off by at most 2 / 256 of their absolute sum"}));
  training.batch_norm = spec::BatchNorm::ghost;
  training.ghost_batch = 32;
  EXPECT_EQ(batch_rule_lines(training, 1)[1], "batch norm: statistics of 32 samples (ghost)");
}

}  // namespace
}  // namespace lockstep::run
