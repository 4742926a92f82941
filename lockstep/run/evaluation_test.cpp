// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::run {
namespace {

TEST(EvaluationTest, TheBusiestRankHasAsManyRowsAsItsShare) {
  const std::vector<std::pair<int64_t, int64_t>> cases{{256, 256}, {29, 4}, {33, 4}, {5, 8}, {50'000, 32}};
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const auto& [samples, batch] : cases) {
      int64_t most = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const EvaluationShare share = evaluation_share(samples, batch, rank, ranks);
        most = std::max(most, std::min(samples - share.from.consumed, share.batches * batch));
      }
      EXPECT_EQ(busiest_rows(samples, batch, ranks), most) << samples << " by " << batch << " on " << ranks;
    }
  }
}

TEST(EvaluationTest, OnAGpuAnEvaluationTakesThePassesOfTraining) {
  spec::Job job;
  job.training.global_batch = 256;
  EXPECT_EQ(evaluation_rows(job, 4, /*on_gpu=*/false), 32);
  EXPECT_EQ(evaluation_rows(job, 4, /*on_gpu=*/true), 64);
  job.training.micro_batch = 16;
  EXPECT_EQ(evaluation_rows(job, 4, true), 16);
  job.evaluation.batch = 100;
  EXPECT_EQ(evaluation_rows(job, 4, true), 100);
}

}  // namespace
}  // namespace lockstep::run
