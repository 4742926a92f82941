// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/network.h"

namespace lockstep::model {
namespace {

spec::Model tiramisu(const std::string& name, int64_t classes = 11) {
  spec::Model model;
  model.name = name;
  model.classes = classes;
  return model;
}

// tests/oracles/segment.py counts the same in a PyTorch version.
TEST(FcDenseNetTest, HasThePublishedNumbersOfParameters) {
  const std::vector<std::tuple<std::string, int64_t, int64_t>> published{
      {"fcdensenet56", 1376795, 1397963}, {"fcdensenet67", 3463243, 3502923}, {"fcdensenet103", 9322091, 9425163}};
  for (const auto& [name, trained, with_statistics] : published) {
    const Network network = make_network(tiramisu(name), 224, 1, at::kMeta);
    int64_t statistics = 0;
    for (const Named& buffer : network.buffers()) statistics += buffer.tensor.numel();
    EXPECT_EQ(network.parameter_count(), trained) << name;
    EXPECT_EQ(network.parameter_count() + statistics, with_statistics) << name;
  }
}

TEST(FcDenseNetTest, GivesALogitMapOfTheImagesSizeWhateverItIs) {
  spec::Model model = tiramisu("fcdensenet56", 3);
  model.width = 2;
  const Network network = make_network(model, spec::ImageSize{45, 70}, 1);
  const NamedTensors output = network.forward({{"image", at::rand({2, 3, 45, 70})}}, Mode::train);
  EXPECT_EQ(output.at("logit_map").sizes().vec(), (std::vector<int64_t>{2, 3, 45, 70}));
  output.at("logit_map").square().mean().backward();
  for (const Named& parameter : network.parameters()) EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
}

TEST(FcDenseNetTest, RefusesAnImageThatCannotBeHalvedFiveTimes) {
  EXPECT_THROW(make_network(tiramisu("fcdensenet56"), 31, 1, at::kMeta), base::Error);
}

}  // namespace
}  // namespace lockstep::model
