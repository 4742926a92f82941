// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/operators.h"

#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs::exporting {
namespace {

using testing::HasSubstr;

// The nodes for what `work` makes of an input [batch, 4].
std::vector<onnx::Node> nodes_for(const std::function<void(const at::Tensor&)>& work) {
  const at::Tensor first = at::ones({kFirstBatch, 4}), second = at::ones({kSecondBatch, 4});
  const auto calls = model::record_calls([&] { work(first); }), others = model::record_calls([&] { work(second); });
  Graph graph({}, Graph::Weights::fp32);
  graph.set_input("image");
  graph.bind(first, "image");
  for (const PairedCall& call : pair_calls(calls, others)) translate(call, graph);
  return graph.model().nodes;
}

TEST(OperatorsTest, WhatDoesNotFollowFromTheInputIsNotInTheGraph) {
  const auto nodes = nodes_for([](const at::Tensor& input) { input.add(at::ones({4}).mul(2).sigmoid()); });
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].op, "Add");
}

TEST(OperatorsTest, WhatFollowsTheBatchAloneIsInTheGraph) {
  const auto nodes = nodes_for([](const at::Tensor& input) { at::ones({1, 4}).expand({input.size(0), -1}); });
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].op, "Shape");
  EXPECT_EQ(nodes[2].op, "Expand");
}

TEST(OperatorsTest, AnOperatorWithoutATranslationIsNamed) {
  try {
    nodes_for([](const at::Tensor& input) { at::cumsum(input, 1); });
    ADD_FAILURE() << "translated";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::bug);
    EXPECT_THAT(error.what(), HasSubstr("aten::cumsum"));
  }
}

}  // namespace
}  // namespace lockstep::verbs::exporting
