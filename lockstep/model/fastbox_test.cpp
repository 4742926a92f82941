// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/network.h"

namespace lockstep::model {
namespace {

spec::Model fastbox(const std::string& encoder, int64_t width = 0) {
  spec::Model model;
  model.name = "fastbox_" + encoder;
  model.classes = 2;
  model.width = width;
  return model;
}

TEST(FastBoxTest, HasTheParametersOfKittiBox) {
  const Network network = make_network(fastbox("vgg16"), {384, 1248}, 1, at::kMeta);
  EXPECT_EQ(network.parameter_count(), 14'714'688 + 618'680);
  int64_t decoder = 0;
  for (const Named& parameter : network.blocks().back()->parameters) decoder += parameter.tensor.numel();
  EXPECT_EQ(decoder, 618'680);
}

TEST(FastBoxTest, SaysTwoThingsOfEveryCell) {
  for (const char* encoder : {"resnet18", "resnet50", "vgg16", "googlenet"}) {
    const Network network = make_network(fastbox(encoder), {64, 96}, 1);
    const NamedTensors outputs = network.forward({{"image", at::rand({2, 3, 64, 96})}}, Mode::train);
    ASSERT_EQ(outputs.size(), 4U) << encoder;
    EXPECT_EQ(outputs.at("confidence").sizes().vec(), (std::vector<int64_t>{2, 6, 2})) << encoder;
    EXPECT_EQ(outputs.at("box").sizes().vec(), (std::vector<int64_t>{2, 6, 4})) << encoder;
    EXPECT_EQ(outputs.at("confidence2").sizes().vec(), (std::vector<int64_t>{2, 6, 2})) << encoder;
    EXPECT_EQ(outputs.at("delta").sizes().vec(), (std::vector<int64_t>{2, 6, 4})) << encoder;
    at::Tensor sum = at::zeros({});
    for (const Named& output : outputs) sum = sum + output.tensor.square().sum();
    sum.backward();
    for (const Named& parameter : network.parameters()) {
      EXPECT_TRUE(parameter.tensor.grad().defined()) << encoder << " " << parameter.name;
    }
  }
}

// What is asked of the second look is answered by where the first one points.
TEST(FastBoxTest, TheSecondLookGivesTheFirstAGradient) {
  const Network network = make_network(fastbox("resnet18", 8), {64, 96}, 1);
  const NamedTensors outputs = network.forward({{"image", at::rand({2, 3, 64, 96})}}, Mode::evaluate);
  outputs.at("delta").sum().backward();
  for (const Named& parameter : network.blocks().back()->parameters) {
    if (parameter.name != "decoder.box.weight") continue;
    EXPECT_GT(parameter.tensor.grad().abs().sum().item<double>(), 0);
  }
}

TEST(FastBoxTest, ACanvasThatCellsDoNotTileIsAnError) {
  try {
    make_network(fastbox("resnet18"), {375, 1242}, 1);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("data.image_size: 375x1242 is no multiple of 32"));
  }
}

}  // namespace
}  // namespace lockstep::model
