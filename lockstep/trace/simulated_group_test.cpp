// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/simulated_group.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

TEST(SimulatedGroupTest, EveryRankDoesTheSame) {
  WatchedDevice watched;
  const auto group = simulated_group(4, watched.recorder);
  at::Tensor value = at::ones({2}, at::kDouble);
  group->all_reduce_sum(value);
  EXPECT_EQ(value.sum().item<double>(), 8);
  EXPECT_EQ(group->all_gather(value).size(), 4);
  const auto recording = watched.finish();
  ASSERT_EQ(recording.events.size(), 4);
  EXPECT_EQ(recording.events[0].kind, forecast::EventKind::collective);
  EXPECT_EQ(recording.events[0].bytes, 16);
  EXPECT_EQ(recording.events[1].kind, forecast::EventKind::wait);
  EXPECT_EQ(recording.events[2].collective, forecast::CollectiveKind::all_gather);
  EXPECT_EQ(recording.events[2].bytes, 64);  // what it leaves
}

TEST(SimulatedGroupTest, RecordsWhatPartitioningExchanges) {
  WatchedDevice watched;
  const auto group = simulated_group(4, watched.recorder);
  at::Tensor whole = at::ones({8}, at::kFloat);
  at::Tensor part = at::ones({2}, at::kFloat);
  group->reduce_scatter_sum(whole, part);
  EXPECT_EQ(part.sum().item<double>(), 8);
  group->all_gather_into(part, whole);
  EXPECT_EQ(whole.sum().item<double>(), 32);
  group->group()->_allgather_base(whole, part)->wait();
  group->send(part, 1);
  const auto recording = watched.finish();
  std::vector<std::pair<forecast::CollectiveKind, int64_t>> seen;
  for (const auto& event : recording.events) {
    if (event.kind == forecast::EventKind::collective) seen.emplace_back(event.collective, event.bytes);
  }
  using forecast::CollectiveKind;
  const std::vector<std::pair<CollectiveKind, int64_t>> expected = {{CollectiveKind::reduce_scatter, 32},
                                                                    {CollectiveKind::all_gather, 32},
                                                                    {CollectiveKind::all_gather, 32},
                                                                    {CollectiveKind::send, 8}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(recording.events.size(), 8);  // each is waited for
}

}  // namespace
}  // namespace lockstep::trace
