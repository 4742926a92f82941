// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/loader_bench.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

TEST(LoaderBenchTest, TheBestPeerIsTheOneWithTheSmallestRatio) {
  LoaderRow row;
  row.ours.rounds = {{1, 1, 100}, {1, 2, 100}, {1, 1, 100}};
  row.peers = {{"slow", "1", {{1, 4, 100}, {1, 8, 100}, {1, 9, 100}}},
               {"fast", "2", {{1, 2, 100}, {1, 3, 100}, {1, 2, 100}}}};
  EXPECT_EQ(row.ratio_to(row.peers[0]), 4);
  ASSERT_TRUE(row.best_peer());
  EXPECT_EQ(row.best_peer()->name, "fast");
  EXPECT_EQ(row.ratio_to(*row.best_peer()), 2);
  row.peers.clear();
  EXPECT_FALSE(row.best_peer());
}

TEST(LoaderBenchTest, TimesOursAndTheLimitOnBothKindsOfData) {
  LoaderBench bench;
  bench.images = 6;
  bench.batch = 4;
  bench.rounds = 2;
  const LoaderFigures figures = bench_loader(bench);
  ASSERT_EQ(figures.rows.size(), 2u);
  const base::Json rows = loader_rows(bench, figures, "lockstep bench loader");
  ASSERT_EQ(rows.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(rows.items()[i].at("samples_per_core_second").as_double(), 0);
    EXPECT_GT(rows.items()[i].at("ratio_to_limit").as_double(), 0);
  }
}

}  // namespace
}  // namespace lockstep::measure
