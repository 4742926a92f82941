// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <mutex>

namespace lockstep::step {
namespace {

// What slice `s` adds: values of very different sizes, so that another order shows. One tensor is channels-last, and
// together they are longer than one buffer.
Tensors contribution(int64_t slice) {
  const double factor = slice % 2 == 0 ? 1e4 : 0.37;
  const auto wave = [&](int64_t size) { return (at::arange(size, at::kFloat) * factor).sin() * factor; };
  return {wave(7), wave(2 * 3 * 5 * 4).view({2, 3, 5, 4}).contiguous(at::MemoryFormat::ChannelsLast), wave(0),
          wave(1003)};
}

Tensors total_on(int64_t num_ranks, int64_t num_rows) {
  const Slices slices(num_rows, 8);
  const Tensors like = contribution(0);
  std::mutex mutex;
  std::vector<Tensors> totals;
  comm::run_thread_ranks(num_ranks, [&](comm::Group& group) {
    TreeSum<Tensors> sum(add_tensors);
    const run::Range mine = slices.of_rank(group.rank(), num_ranks);
    for (int64_t slice = mine.begin; slice < mine.end; ++slice) {
      const bool empty = slices.rows(slice).size() == 0;
      sum.push({slice, 1}, empty ? std::nullopt : std::optional(contribution(slice)));
    }
    Tensors total = exchange_partials(group, slices, sum.take(), like, /*buffer=*/100);
    const std::lock_guard lock(mutex);
    totals.push_back(std::move(total));
  });
  for (const auto& other : totals) {
    for (size_t i = 0; i < like.size(); ++i) EXPECT_TRUE(at::equal(other[i], totals[0][i]));
  }
  return totals[0];
}

TEST(VirtualExchangeTest, GivesTheSameBitsOnAnyNumberOfRanks) {
  for (const int64_t num_rows : {64, 50, 3}) {  // the last leaves slices and whole ranks empty
    const Tensors alone = total_on(1, num_rows);
    for (const int64_t num_ranks : {2, 3, 5, 8}) {
      const Tensors together = total_on(num_ranks, num_rows);
      for (size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(at::equal(together[i], alone[i])) << num_ranks << " ranks, " << num_rows << " rows, tensor " << i;
      }
    }
  }
}

TEST(VirtualExchangeTest, AddsWhatEverySliceHas) {
  Tensors expected = contribution(0);
  for (auto& tensor : expected) tensor = tensor.to(at::kDouble);
  for (int64_t slice = 1; slice < 8; ++slice) {
    const Tensors more = contribution(slice);
    for (size_t i = 0; i < more.size(); ++i) expected[i] += more[i];
  }
  const Tensors total = total_on(3, 64);
  for (size_t i = 0; i < total.size(); ++i) {
    if (total[i].numel() == 0) continue;
    EXPECT_LT((total[i] - expected[i]).abs().max().item<double>(), 0.05) << i;
  }
}

}  // namespace
}  // namespace lockstep::step
