// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/ema.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {

TEST(EmaTest, FollowsTheWeightsAndSwapsThereAndBack) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  Ema ema(0.9, network);
  StepOptions with_ema;
  with_ema.ema = &ema;
  Step step(network, *group, with_ema);
  const double start = network.parameters()[0].tensor.detach().flatten()[0].item<double>();
  step.run(tiny::samples(0, 6, 6), 0.1);
  const double live = network.parameters()[0].tensor.detach().flatten()[0].item<double>();
  const double average = ema.averages()[0].tensor.flatten()[0].item<double>();
  EXPECT_NEAR(average, start + 0.9 * (live - start), 1e-6);  // decay of the first step: 1 / 10
  ema.swap();
  EXPECT_EQ(network.parameters()[0].tensor.detach().flatten()[0].item<double>(), average);
  ema.swap();
  EXPECT_EQ(network.parameters()[0].tensor.detach().flatten()[0].item<double>(), live);
}

}  // namespace lockstep::step
