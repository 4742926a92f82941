// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/model.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/onnx/small_model.h"

namespace lockstep::onnx {
namespace {

TEST(ModelTest, AcceptsOneThatHoldsTogether) {
  check(SmallModel().model);
}

TEST(ModelTest, RefusesWhatNoReaderWouldTake) {
  const auto refuses = [](const std::function<void(Model&)>& spoil) {
    SmallModel small;
    spoil(small.model);
    EXPECT_THROW(check(small.model), base::Error);
  };
  refuses([](Model& model) { model.nodes[0].inputs[0] = "none"; });
  refuses([](Model& model) { model.outputs[0].name = "none"; });
  refuses([](Model& model) { model.nodes[0].outputs[0] = "image"; });
  refuses([](Model& model) { model.tensors[0].dims = {3}; });
  refuses([](Model& model) { model.nodes.insert(model.nodes.begin(), {"Relu", {"output"}, {"early"}}); });
  refuses([](Model& model) { model.name.clear(); });
}

}  // namespace
}  // namespace lockstep::onnx
