// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/batch_norm.h"

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "lockstep/model/network.h"

namespace lockstep::model {
namespace {

TEST(BatchNormRuleTest, EveryBatchNormOfTheZooAsksItWhileTrainingOnly) {
  for (const std::string name : {"smallcnn", "resnet18", "densenet121", "googlenet", "efficientnet_lite0"}) {
    spec::Model model;
    model.name = name;
    model.classes = 2;
    const c10::AutoGradMode no_gradients(false);
    Network network = make_network(model, 64, 1);
    size_t norms = 0;
    for (const auto& buffer : network.buffers()) norms += buffer.name.ends_with("running_mean") ? 1 : 0;
    size_t calls = 0;
    network.use_batch_norm([&](const BatchNormCall& call) {
      ++calls;
      EXPECT_EQ(call.running_mean.numel(), call.input.size(1));
      return call.input;
    });
    const at::Tensor images = at::ones({1, 3, 64, 64});
    network.forward({{"image", images}}, Mode::train);
    EXPECT_EQ(calls, norms) << name;
    network.forward({{"image", images}}, Mode::evaluate);
    EXPECT_EQ(calls, norms) << name;
    network.use_batch_norm({});
    for (const auto& block : network.blocks()) EXPECT_FALSE(block->batch_norm);
  }
}

}  // namespace
}  // namespace lockstep::model
