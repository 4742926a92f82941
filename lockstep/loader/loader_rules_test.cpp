// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader_rules.h"

#include <gtest/gtest.h>

namespace lockstep::loader {
namespace {

TEST(LoaderRulesTest, EveryRankGetsAWholeEvaluationBatchOfFeatures) {
  spec::Job job;
  job.training.global_batch = 256;
  const LoaderSettings settings{.rank = 2, .ranks = 4, .validates = true};
  EXPECT_EQ(feature_loader(job, settings).global_batch, 4 * 32);
  EXPECT_EQ(validation_loader(job, settings).global_batch, 32);
  EXPECT_EQ(validation_loader(job, settings).num_ranks, 1);
  EXPECT_EQ(training_loader(job, settings).num_ranks, 4);
  EXPECT_DOUBLE_EQ(training_loader(job, settings).memory_share + validation_loader(job, settings).memory_share, 1);
}

}  // namespace
}  // namespace lockstep::loader
