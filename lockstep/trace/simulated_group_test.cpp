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
}

}  // namespace
}  // namespace lockstep::trace
