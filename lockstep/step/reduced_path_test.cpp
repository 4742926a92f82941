// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/reduced_path.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(ReducedPathTest, GivesTheScaledGradientAndTellsAStop) {
  const auto group = comm::single_group();
  const StepOptions options;
  std::vector<at::Tensor> gradients;
  for (const double scale : {1.0, 4.0}) {
    auto network = tiny::network("mlp");
    ReducedPath path(network, network.parameters(), *group, options);
    const BatchSums sums = path.run(tiny::samples(0, 6, 6), scale, scale > 1);
    EXPECT_EQ(sums.stop, scale > 1);
    EXPECT_EQ(sums.samples, 6);
    gradients.push_back(network.parameters().front().tensor.grad());
  }
  EXPECT_TRUE(at::allclose(gradients[0] * 4, gradients[1], 1e-6, 0));
}

TEST(ReducedPathTest, StatisticsOfAStepThatIsNotTakenAreDropped) {
  const auto group = comm::single_group();
  const StepOptions options;
  auto network = tiny::network();
  const at::Tensor statistic = network.buffers().front().tensor;
  const at::Tensor before = statistic.clone();
  ReducedPath path(network, network.parameters(), *group, options);
  path.run(tiny::samples(0, 6, 6), 1, false);
  EXPECT_FALSE(at::equal(statistic, before));
  path.drop_statistics();
  EXPECT_TRUE(at::equal(statistic, before));
}

}  // namespace
}  // namespace lockstep::step
