// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/rank_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::spec {
namespace {

std::string rank_complaint(const Training& training, int64_t ranks) {
  try {
    check_batch_on_ranks(training, ranks);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return std::string(error.what()) + " | " + error.fix();
  }
  return "";
}

TEST(RankRulesTest, MoreRanksThanSamplesAreNamedWithTheFix) {
  Training training;
  training.global_batch = 4;
  EXPECT_EQ(rank_complaint(training, 4), "");
  EXPECT_EQ(rank_complaint(training, 3), "");  // need not divide
  EXPECT_THAT(rank_complaint(training, 7), testing::HasSubstr("3 of them would never have a sample"));
  EXPECT_THAT(rank_complaint(training, 7), testing::HasSubstr("start 4 ranks at most"));
}

TEST(RankRulesTest, ASliceLargerThanARanksShareIsNamedWithTheFix) {
  Training training;
  training.batch_norm = BatchNorm::ghost;
  training.ghost_batch = 16;
  EXPECT_EQ(rank_complaint(training, 2), "");
  EXPECT_THAT(rank_complaint(training, 3), testing::HasSubstr("each of 3 ranks has 10 samples"));
  EXPECT_THAT(rank_complaint(training, 3), testing::HasSubstr("--set training.ghost_batch=10"));
}

TEST(RankRulesTest, ASliceOfOneSampleIsRefused) {
  Training training;
  training.batch_norm = BatchNorm::ghost;
  training.ghost_batch = 16;
  training.global_batch = 64;
  EXPECT_EQ(rank_complaint(training, 3), "");  // 22 and 21: slices of 6 and 5
  training.global_batch = 51;                  // 17 on each
  EXPECT_THAT(rank_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
  training.global_batch = 50;  // 17, 17, 16
  EXPECT_THAT(rank_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
  training.micro_batch = 16;  // and one more sample in a pass of its own
  EXPECT_THAT(rank_complaint(training, 3), testing::HasSubstr("a slice of one sample is left"));
}

TEST(RankRulesTest, MoreRanksThanSlicesAreNamedWithTheFix) {
  Training training;
  training.virtual_ranks = 4;
  EXPECT_EQ(rank_complaint(training, 4), "");
  EXPECT_THAT(rank_complaint(training, 8), testing::HasSubstr("8 ranks share 4 slices (training.virtual_ranks)"));
  EXPECT_THAT(rank_complaint(training, 8), testing::HasSubstr("start 4 ranks or fewer"));
}

}  // namespace
}  // namespace lockstep::spec
