// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/frozen.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep::model {
namespace {

// REQUIRES: no gradients. Statistics and scales away from 0 and 1, which would hide a norm that was folded in wrongly.
Network lively_network(const std::string& name, int64_t size) {
  spec::Model model;
  model.name = name;
  model.classes = 7;
  Network network = make_network(model, size, 1);
  for (const auto& buffer : network.buffers()) {
    if (buffer.tensor.is_floating_point()) buffer.tensor.copy_(0.5 + at::rand_like(buffer.tensor));
  }
  for (const auto& parameter : network.parameters()) {
    if (parameter.tensor.dim() == 1) parameter.tensor.copy_(0.5 + at::rand_like(parameter.tensor));
  }
  return network;
}

class FrozenNetworkTest : public testing::TestWithParam<const char*> {};

TEST_P(FrozenNetworkTest, GivesWhatTheNetworkGives) {
  const c10::AutoGradMode no_gradients(false);
  const Network network = lively_network(GetParam(), 64);
  ASSERT_TRUE(FrozenNetwork::takes(network));
  FrozenNetwork frozen(network);
  for (const int64_t batch : {1, 3, 1}) {
    const at::Tensor image = at::rand({batch, 3, 64, 64});
    const at::Tensor expected = network.run({image}, Mode::evaluate, 0, network.blocks().size()).front();
    frozen.run({at::rand({batch, 3, 64, 64})});  // the list does not remember values
    const at::Tensor found = frozen.run({image}).front();
    EXPECT_LE((found - expected).abs().max().item<double>(), 2e-5 * expected.abs().max().item<double>()) << batch;
  }
  EXPECT_EQ(frozen.lists(), 2);  // of 1 and 2 rows
}

INSTANTIATE_TEST_SUITE_P(Zoo, FrozenNetworkTest,
                         testing::Values("linear", "smallcnn", "resnet18", "resnet50", "mobilenet_v2", "densenet121",
                                         "googlenet", "efficientnet_lite0", "convnext_tiny"));

TEST(FrozenBatchTest, ABatchWithoutRowsGivesNone) {
  const c10::AutoGradMode no_gradients(false);
  const Network network = lively_network("smallcnn", 32);
  FrozenNetwork frozen(network);
  EXPECT_EQ(frozen.run({at::rand({0, 3, 32, 32})}).front().size(0), 0);
  EXPECT_EQ(frozen.lists(), 0);
}

TEST(FusedCallsTest, OneConvolutionTakesNormSumAndReluWithIt) {
  const c10::AutoGradMode no_gradients(false);
  const Network network = lively_network("resnet18", 32);
  const at::Tensor image = at::rand({1, 3, 32, 32});
  Bundle output;
  const auto recorded =
      record_calls([&] { output = network.run({image}, Mode::evaluate, 0, network.blocks().size()); });
  const auto calls = varying_calls(recorded, {image});
  ASSERT_TRUE(calls);
  PackedConvolutions packed;
  const auto fused = fuse_calls(*calls, {image}, output, packed);
  const auto count = [&](const std::string& name) {
    return std::count_if(fused.begin(), fused.end(), [&](const Call& call) { return call.name == name; });
  };
  EXPECT_EQ(packed.size(), 20U);  // convolutions of ResNet-18
  EXPECT_EQ(count("mkldnn::_convolution_pointwise") + count("mkldnn::_convolution_pointwise_"), 20);
  EXPECT_EQ(count("mkldnn::_convolution_pointwise_"), 8);  // blocks: each sums into its shortcut
  for (const char* name : {"aten::conv2d", "aten::batch_norm", "aten::add_", "aten::relu_"}) EXPECT_EQ(count(name), 0);
}

}  // namespace
}  // namespace lockstep::model
