// SPDX-License-Identifier: Apache-2.0
// What a replayed step does is tested on a GPU: tests/nccl/step_graph_on_gpu.cpp.
#include "lockstep/step/step_graph.h"

#include <gtest/gtest.h>

#include "lockstep/objective/classify.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(StepGraphTest, ACpuHasNone) {
  const auto group = comm::single_group();
  const auto network = tiny::network();
  EXPECT_EQ(StepGraph::make({}, *group, {network.parameters().front().tensor}), nullptr);
}

TEST(StepGraphTest, BatchesThatAreMixedWithDrawnNumbersAreNotAlike) {
  spec::Training training;
  EXPECT_TRUE(objective::Classify(training).same_for_all_batches());
  training.mixup = 0.2;
  EXPECT_FALSE(objective::Classify(training).same_for_all_batches());
}

}  // namespace
}  // namespace lockstep::step
