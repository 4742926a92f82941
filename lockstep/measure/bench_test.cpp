// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/bench.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

StepBench small() {
  StepBench bench;
  bench.job.model.name = "smallcnn";
  bench.job.model.classes = 10;
  bench.job.model.width = 4;
  bench.job.data.image_size = 16;
  bench.job.training.global_batch = 4;
  bench.job.training.threads = 1;
  bench.steps = 1;
  bench.rounds = 3;
  return bench;
}

TEST(BenchTest, TakesTheMedian) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(BenchTest, TheRatioIsTheMedianOfTheRounds) {
  StepTimes times;
  times.ours = {1, 2, 1};
  times.peer = {2, 2, 1.5};
  EXPECT_EQ(*times.ratio(), 1.5);
}

TEST(BenchTest, TimesTheRealStepAndWritesARow) {
  const auto bench = small();
  const auto times = bench_step(bench);
  ASSERT_EQ(times.ours.size(), 3U);
  const auto row = result_row(bench, times, "lockstep bench step");
  EXPECT_GT(row.at("samples_per_second").as_double(), 0);
  EXPECT_EQ(row.at("model").as_string(), "smallcnn");
  EXPECT_EQ(row.find("ratio"), nullptr);
}

}  // namespace
}  // namespace lockstep::measure
