// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/kept_traces.h"

#include <gtest/gtest.h>

#include "lockstep/planning/invented_tracer.h"

namespace lockstep::planning {
namespace {

class CountingTracer final : public Tracer {
 public:
  forecast::Recording step(const spec::Job& job, const SimulatedRank& rank) override {
    ++steps;
    return invented.step(job, rank);
  }
  forecast::Recording evaluation(const spec::Job& job, const SimulatedRank& rank) override { return step(job, rank); }
  std::vector<run::FeatureNeeds> features(const spec::Job&, int64_t) override { return {}; }
  NormCheck norm_check() override { return invented.norm_check(); }

  InventedTracer invented;
  int steps = 0;
};

TEST(KeptTracesTest, RecordsEachStepOnce) {
  CountingTracer counting;
  KeptTraces kept(&counting);
  spec::Job job;
  job.training.micro_batch = 8;
  SimulatedRank rank;
  rank.rows = 8;
  const auto first = kept.step(job, rank);
  EXPECT_EQ(kept.step(job, rank), first);
  EXPECT_EQ(counting.steps, 1);
  kept.evaluation(job, rank);
  EXPECT_EQ(counting.steps, 2);
  rank.ranks = 2;
  EXPECT_NE(kept.step(job, rank), first);
  job.training.precision = spec::Precision::bf16;
  kept.step(job, rank);
  EXPECT_EQ(counting.steps, 4);
}

}  // namespace
}  // namespace lockstep::planning
