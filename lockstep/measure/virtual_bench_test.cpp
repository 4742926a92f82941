// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/virtual_bench.h"

#include <gtest/gtest.h>

namespace lockstep::measure {

TEST(VirtualBenchTest, TimesBothWaysInTurnsOnEveryRank) {
  VirtualBench bench;
  bench.job.model.name = "mlp";
  bench.job.model.classes = 3;
  bench.job.data.image_size = 8;
  bench.job.training.global_batch = 12;
  bench.job.training.threads = 1;
  bench.job.training.virtual_ranks = 4;
  bench.steps = 1;
  bench.rounds = 3;
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    const VirtualTimes times = bench_virtual(bench, group);
    EXPECT_EQ(times.plain.size(), 3U);
    EXPECT_EQ(times.sliced.size(), 3U);
    const base::Json row = virtual_row(bench, times, group.size(), "a command");
    EXPECT_GT(row.at("ratio").as_double(), 0);
    EXPECT_EQ(row.at("ranks").as_int(), 3);
    EXPECT_EQ(row.at("virtual_ranks").as_int(), 4);
  });
}

TEST(VirtualBenchTest, TheRatioIsTheMedianOfTheRounds) {
  const VirtualTimes times{{1, 2, 9}, {2, 2, 3}};
  EXPECT_EQ(times.ratio(), 1);
}

}  // namespace lockstep::measure
