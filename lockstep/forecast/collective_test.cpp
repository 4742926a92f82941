// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/collective.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::forecast {
namespace {

Network eight(bool nvlink) {
  return {.ranks = 8, .nodes = 1, .intra_rate = nvlink ? 450e9 : 15.76e9, .nvlink = nvlink};
}

TEST(CollectiveTest, OneRankExchangesNothing) {
  EXPECT_EQ(collective_seconds(CollectiveKind::all_reduce, 1e9, {}), 0);
  EXPECT_EQ(mpi_collective_seconds(CollectiveKind::all_reduce, 1e9, {}), 0);
  EXPECT_EQ(overlap_cost({}), 0);
}

TEST(CollectiveTest, ALargeAllReduceGoesRoundTheRing) {
  // Simple ring: 8.4 us + 14 hops of 3.4 us, then 2 x 7/8 of the bytes over 81 % of the link.
  const double expected = 8.4e-6 + 14 * 3.4e-6 + 1e9 * 1.75 / (450e9 * .81);
  EXPECT_NEAR(collective_seconds(CollectiveKind::all_reduce, 1e9, eight(true)), expected, 1e-9);
}

TEST(CollectiveTest, ASmallAllReduceIsLatency) {
  // LL ring: 6.6 us + 14 hops of 0.6 us = 15 us; LL tree: 6.8 us + 2 x 7 hops of 0.6 us = 15.2 us.
  EXPECT_NEAR(collective_seconds(CollectiveKind::all_reduce, 8, eight(true)), 15e-6, 0.1e-6);
}

TEST(CollectiveTest, GatheringAndScatteringIsHalfOfReducing) {
  const double reduce = collective_seconds(CollectiveKind::all_reduce, 4e9, eight(false));
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    EXPECT_NEAR(collective_seconds(kind, 4e9, eight(false)) / reduce, 0.5, 0.001);
  }
}

TEST(CollectiveTest, GrowsWithBytesAndShrinksWithTheRate) {
  for (double bytes = 1; bytes < 1e11; bytes *= 4) {
    const double now = collective_seconds(CollectiveKind::all_reduce, bytes, eight(true));
    EXPECT_GE(collective_seconds(CollectiveKind::all_reduce, bytes * 4, eight(true)), now);
    EXPECT_GE(collective_seconds(CollectiveKind::all_reduce, bytes, eight(false)), now);
  }
}

TEST(CollectiveTest, TheNetworkLimitsAcrossNodes) {
  Network two = eight(true);
  two.ranks = 16;
  two.nodes = 2;
  two.inter_rate = 12.5e9;
  const double bytes = 1e9;
  EXPECT_GT(collective_seconds(CollectiveKind::all_reduce, bytes, two), bytes * 2 * 15 / 16 / 12.5e9);
  two.inter_rate = 0;
  EXPECT_THROW(collective_seconds(CollectiveKind::all_reduce, bytes, two), base::Error);
}

TEST(CollectiveTest, ReadsTheRateOfALink) {
  EXPECT_NEAR(*pcie_rate("PCIe 3.0 x16"), 15.76e9, 0.01e9);
  EXPECT_NEAR(*pcie_rate("PCIe 5.0 x8"), 31.5e9, 0.1e9);
  EXPECT_FALSE(pcie_rate("NVLink-C2C"));
  EXPECT_FALSE(pcie_rate(""));
}

TEST(CollectiveTest, LinksFollowFromTheGpu) {
  const auto all = catalogue::load_embedded();
  const Network v100 = derive_network(all.gpu("v100-32"), 8, 8);
  EXPECT_TRUE(v100.nvlink);
  EXPECT_DOUBLE_EQ(v100.intra_rate, 150e9);
  const Network t4 = derive_network(all.gpu("t4"), 4, 4);
  EXPECT_FALSE(t4.nvlink);
  EXPECT_NEAR(t4.intra_rate, 15.76e9, 0.01e9);
  EXPECT_EQ(derive_network(all.gpu("h200"), 16, 8, 50e9).nodes, 2);
  EXPECT_THROW(derive_network(all.gpu("h200"), 16, 8), base::Error);      // no rate between the nodes
  EXPECT_THROW(derive_network(all.gpu("h200"), 9, 8, 1e9), base::Error);  // 9 do not fill two nodes evenly
}

TEST(CollectiveTest, MpiPaysRoundsAndBytes) {
  const Network four{.ranks = 4, .nodes = 4, .inter_rate = 1e9, .inter_latency = 10e-6};
  EXPECT_NEAR(mpi_collective_seconds(CollectiveKind::all_reduce, 0, four), 4 * 10e-6, 1e-12);
  EXPECT_NEAR(mpi_collective_seconds(CollectiveKind::all_reduce, 0.96e9, four), 4 * 10e-6 + 1.5, 1e-9);
}

TEST(NetworkTest, ABridgeJoinsTwoAndGeForceGoesThroughTheNodesMemory) {
  catalogue::Gpu gpu;
  gpu.id = "bridged";
  gpu.nvlink_gbs = 112.5;
  gpu.nvlink_gpus = 2;
  gpu.pcie = "PCIe 4.0 x16";
  EXPECT_TRUE(derive_network(gpu, 2, 2).nvlink);
  const Network four = derive_network(gpu, 4, 4);
  EXPECT_FALSE(four.nvlink);
  gpu.peer = "none";
  EXPECT_DOUBLE_EQ(derive_network(gpu, 4, 4).intra_rate, four.intra_rate / 2);
  EXPECT_TRUE(derive_network(gpu, 4, 2, 1e9).nvlink) << "two of each node";
}

}  // namespace
}  // namespace lockstep::forecast
