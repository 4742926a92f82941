// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/flat_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(FlatBlockTest, EveryElementLiesInOneRanksPart) {
  const auto network = tiny::network();
  for (const int64_t ranks : {1, 2, 3, 4, 7}) {
    for (const auto& flat : flat_blocks(network, 0, ranks)) {
      EXPECT_EQ(flat.part * ranks, flat.row);
      EXPECT_EQ(flat.part % kAlignment, 0);
      for (const auto& slot : flat.slots) {
        EXPECT_EQ(slot.begin % kAlignment, 0);
        int64_t seen = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Cut cut = cut_of(flat, slot, rank);
          if (cut.count == 0) continue;
          EXPECT_EQ(cut.first, seen);
          EXPECT_EQ(cut.first % kAlignment, 0);
          EXPECT_LE(cut.at + cut.count, flat.part);
          seen += cut.count;
        }
        EXPECT_EQ(seen, slot.numel) << slot.name;
      }
    }
  }
}

TEST(FlatBlockTest, PaddingIsBelowOneAlignmentEachParameterAndRank) {
  const auto network = tiny::network();
  for (const auto& flat : flat_blocks(network, 0, 3)) {
    int64_t numel = 0;
    for (const auto& slot : flat.slots) numel += slot.numel;
    EXPECT_LT(flat.row - numel, kAlignment * static_cast<int64_t>(flat.slots.size() + 3));
  }
}

TEST(FlatBlockTest, FrozenBlocksHaveNoRow) {
  const auto network = tiny::network();
  const size_t head = network.index_of("head");
  const auto rows = flat_blocks(network, head, 2);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].block, head);
}

TEST(FlatBlockTest, PartitionsPutTogetherAreTheParameterAsItLies) {
  const at::Tensor kernel = at::arange(2 * 16 * 3 * 3, at::kFloat).view({2, 16, 3, 3});
  auto network = tiny::network();
  auto& parameter = network.blocks()[0]->parameters[0];
  parameter.tensor = kernel.contiguous(at::MemoryFormat::ChannelsLast);
  const auto rows = flat_blocks(network, 0, 3);
  const Slot& slot = rows[0].slots[0];
  at::Tensor row = at::zeros({rows[0].row});
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Cut cut = cut_of(rows[0], slot, rank);
    at::Tensor part = row.narrow(0, rank * rows[0].part, rows[0].part);
    const at::Tensor partition = partition_of_parameter(parameter.tensor, slot, cut);
    EXPECT_EQ(partition.dim(), 2);
    partition_of_part(part, slot, cut).copy_(partition);
  }
  EXPECT_TRUE(at::equal(in_row(row, slot), kernel));
  EXPECT_TRUE(in_row(row, slot).is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(lies_as(parameter.tensor, slot));
  EXPECT_FALSE(lies_as(kernel, slot));
}

}  // namespace
}  // namespace lockstep::step
