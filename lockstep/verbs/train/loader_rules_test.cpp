// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/loader_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/step/evaluate.h"

namespace lockstep::verbs {
namespace {

TEST(LoaderRulesTest, TheBusiestRankOfAnEvaluationHasAsManyRowsAsItsShare) {
  const std::vector<std::pair<int64_t, int64_t>> cases{{256, 256}, {29, 4}, {33, 4}, {5, 8}, {50'000, 32}};
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const auto& [samples, batch] : cases) {
      std::mutex mutex;
      int64_t most = 0;
      comm::run_thread_ranks(ranks, [&, samples = samples, batch = batch](comm::Group& group) {
        const step::EvaluationShare share = step::evaluation_share(samples, batch, group);
        const int64_t rows = std::min(samples - share.from.consumed, share.batches * batch);
        const std::lock_guard lock(mutex);
        most = std::max(most, rows);
      });
      EXPECT_EQ(busiest_rows(samples, batch, ranks), most) << samples << " by " << batch << " on " << ranks;
    }
  }
}

TEST(LoaderRulesTest, OnACardAnEvaluationTakesThePassesOfTraining) {
  spec::Job job;
  job.training.global_batch = 256;
  EXPECT_EQ(step::evaluation_rows(job, 4, /*card=*/false), 32);
  EXPECT_EQ(step::evaluation_rows(job, 4, /*card=*/true), 64);
  job.training.micro_batch = 16;
  EXPECT_EQ(step::evaluation_rows(job, 4, true), 16);
  job.evaluation.batch = 100;
  EXPECT_EQ(step::evaluation_rows(job, 4, true), 100);
}

TEST(LoaderRulesTest, EveryRankGetsAWholeEvaluationBatchOfFeatures) {
  spec::Job job;
  job.training.global_batch = 256;
  const LoaderSeat seat{.rank = 2, .ranks = 4, .validates = true};
  EXPECT_EQ(feature_loader(job, seat).global_batch, 4 * 32);
  EXPECT_EQ(validation_loader(job, seat).global_batch, 32);
  EXPECT_EQ(validation_loader(job, seat).num_ranks, 1);
  EXPECT_EQ(training_loader(job, seat).num_ranks, 4);
  EXPECT_DOUBLE_EQ(training_loader(job, seat).memory_share + validation_loader(job, seat).memory_share, 1);
}

}  // namespace
}  // namespace lockstep::verbs
