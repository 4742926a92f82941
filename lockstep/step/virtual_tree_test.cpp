// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_tree.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::step {
namespace {

// Text shows the order of additions: "((0+1)+(2+3))".
TreeSum<std::string> written_sum() {
  return TreeSum<std::string>(
      [](std::string& left, const std::string& right) { left = "(" + left + "+" + right + ")"; });
}

TEST(VirtualTreeTest, MaximalNodesAreAlignedAndCoverTheSlices) {
  EXPECT_EQ(maximal_nodes({0, 8}), (std::vector<Node>{{0, 8}}));
  EXPECT_EQ(maximal_nodes({0, 2}), (std::vector<Node>{{0, 2}}));
  EXPECT_EQ(maximal_nodes({2, 5}), (std::vector<Node>{{2, 2}, {4, 1}}));
  EXPECT_EQ(maximal_nodes({5, 8}), (std::vector<Node>{{5, 1}, {6, 2}}));
  EXPECT_EQ(maximal_nodes({1, 15}).size(), 6u);
  EXPECT_TRUE(maximal_nodes({3, 3}).empty());
}

TEST(VirtualTreeTest, AnyNumberOfRanksAddsInTheSameOrder) {
  const Slices slices(160, 16);
  std::string alone;
  for (int64_t num_ranks = 1; num_ranks <= 16; ++num_ranks) {
    TreeSum<std::string> all = written_sum();
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      TreeSum<std::string> mine = written_sum();
      const run::Range range = slices.of_rank(rank, num_ranks);
      for (int64_t slice = range.begin; slice < range.end; ++slice) mine.push({slice, 1}, std::to_string(slice));
      const auto partials = mine.take();
      const auto nodes = maximal_nodes(range);
      ASSERT_EQ(partials.size(), nodes.size());
      for (size_t k = 0; k < nodes.size(); ++k) {
        EXPECT_EQ(partials[k].node, nodes[k]);
        all.push(partials[k].node, partials[k].value);
      }
    }
    const auto root = all.take();
    ASSERT_EQ(root.size(), 1u);
    if (num_ranks == 1) alone = *root[0].value;
    EXPECT_EQ(*root[0].value, alone) << num_ranks;
  }
  EXPECT_EQ(alone.substr(0, 14), "((((0+1)+(2+3)");
}

TEST(VirtualTreeTest, EmptySlicesAddNothing) {
  TreeSum<std::string> sum = written_sum();
  sum.push({0, 1}, std::nullopt);
  sum.push({1, 1}, "b");
  sum.push({2, 1}, std::nullopt);
  sum.push({3, 1}, std::nullopt);
  const auto root = sum.take();
  ASSERT_EQ(root.size(), 1u);
  EXPECT_EQ(*root[0].value, "b");
}

TEST(VirtualTreeTest, ABatchSmallerThanItsSlicesLeavesSomeEmpty) {
  const Slices slices(5, 8);
  int64_t rows = 0;
  for (int64_t slice = 0; slice < 8; ++slice) {
    EXPECT_LE(slices.rows(slice).size(), 1);
    rows += slices.rows(slice).size();
  }
  EXPECT_EQ(rows, 5);
}

}  // namespace
}  // namespace lockstep::step
