// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/gradient_path.h"

#include <gtest/gtest.h>

#include "lockstep/step/reduced_path.h"
#include "lockstep/step/tiny_network.h"
#include "lockstep/step/virtual_path.h"

namespace lockstep::step {
namespace {

TEST(GradientPathTest, UnlessAskedOtherwiseGradientsAreReducedWhileBackwardRuns) {
  const auto group = comm::single_group();
  const StepOptions options;
  auto network = tiny::network("mlp");
  const auto parameters = network.parameters();
  const auto path = make_gradient_path(network, parameters, *group, options);
  EXPECT_NE(dynamic_cast<ReducedPath*>(path.get()), nullptr);
}

TEST(GradientPathTest, VirtualRanksHaveTheirOwn) {
  const auto group = comm::single_group();
  StepOptions options;
  options.training.virtual_ranks = 4;
  auto network = tiny::network("mlp");
  const auto parameters = network.parameters();
  const auto path = make_gradient_path(network, parameters, *group, options);
  EXPECT_NE(dynamic_cast<VirtualPath*>(path.get()), nullptr);
}

}  // namespace
}  // namespace lockstep::step
