// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/batch_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs {
namespace {

std::string batch_complaint(const spec::Training& training, int64_t ranks) {
  try {
    check_batch_on_ranks(training, ranks);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return std::string(error.what()) + " | " + error.fix();
  }
  return "";
}

TEST(BatchRulesTest, MoreRanksThanSamplesAreNamedWithTheFix) {
  spec::Training training;
  training.global_batch = 4;
  EXPECT_EQ(batch_complaint(training, 4), "");
  EXPECT_EQ(batch_complaint(training, 3), "");  // need not divide
  EXPECT_THAT(batch_complaint(training, 7), testing::HasSubstr("3 of them would never have a sample"));
  EXPECT_THAT(batch_complaint(training, 7), testing::HasSubstr("start 4 ranks at most"));
}

TEST(BatchRulesTest, ASliceLargerThanARanksShareIsNamedWithTheFix) {
  spec::Training training;
  training.batch_norm = spec::BatchNorm::ghost;
  training.ghost_batch = 16;
  EXPECT_EQ(batch_complaint(training, 2), "");
  EXPECT_THAT(batch_complaint(training, 3), testing::HasSubstr("each of 3 ranks has 10 samples"));
  EXPECT_THAT(batch_complaint(training, 3), testing::HasSubstr("--set training.ghost_batch=10"));
}

TEST(BatchRulesTest, ASliceOfOneSampleIsRefused) {
  spec::Training training;
  training.batch_norm = spec::BatchNorm::ghost;
  training.ghost_batch = 16;
  training.global_batch = 64;
  EXPECT_EQ(batch_complaint(training, 3), "");  // 22 and 21: slices of 6 and 5
  training.global_batch = 51;                   // 17 on each
  EXPECT_THAT(batch_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
  training.global_batch = 50;  // 17, 17, 16
  EXPECT_THAT(batch_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
  training.micro_batch = 16;  // and one more sample in a pass of its own
  EXPECT_THAT(batch_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
}

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
}  // namespace lockstep::verbs
