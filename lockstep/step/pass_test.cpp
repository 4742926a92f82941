// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/pass.h"

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(PassTest, PassesOverPartsAddUpToOneOverTheWhole) {
  const StepOptions options;
  std::vector<at::Tensor> gradients;
  std::vector<PassSums> all;
  for (const bool in_parts : {false, true}) {
    auto network = tiny::network("mlp");
    const Pass pass(network, options);
    const Samples samples = tiny::samples(0, 10, 10);
    PassSums sums;
    if (in_parts) {
      sums += pass.run(samples.slice(0, 3), 10);
      sums += pass.run(samples.slice(3, 7), 10);
    } else {
      sums += pass.run(samples, 10);
    }
    gradients.push_back(network.parameters().front().tensor.grad());
    all.push_back(sums);
  }
  EXPECT_TRUE(at::allclose(gradients[0], gradients[1], 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(all[0].totals, all[1].totals, 0, 1e-5));  // loss and correct rows
  EXPECT_EQ(all[1].samples, 10);
}

TEST(PassTest, TheDivisorDividesTheGradientOnly) {
  const StepOptions options;
  auto network = tiny::network("mlp");
  const Pass pass(network, options);
  at::Tensor weight = network.parameters().front().tensor;
  const at::Tensor totals = pass.run(tiny::samples(0, 4, 4), 4).totals;
  const at::Tensor gradient = weight.grad().clone();
  weight.mutable_grad().reset();
  EXPECT_TRUE(pass.run(tiny::samples(0, 4, 4), 8).totals.equal(totals));
  EXPECT_TRUE(at::allclose(weight.grad() * 2, gradient, 1e-6, 0));
}

}  // namespace
}  // namespace lockstep::step
