// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/named_tensors.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

TEST(NamedTensorsTest, KeepsTheirOrderAndReplacesByName) {
  NamedTensors tensors{{"image", at::full({1}, 1.0)}, {"label", at::full({1}, 2.0)}};
  tensors.set("image", at::full({1}, 3.0));
  tensors.set("weight", at::full({1}, 4.0));
  std::string names;
  for (const auto& entry : tensors) names += entry.name + " ";
  EXPECT_EQ(names, "image label weight ");
  EXPECT_EQ(tensors.at("image").item<double>(), 3);
  EXPECT_EQ(tensors.find("boxes"), nullptr);
  EXPECT_THROW(tensors.at("boxes"), base::Error);
}

}  // namespace
}  // namespace lockstep::model
