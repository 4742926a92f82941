// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/graph.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs::exporting {
namespace {

TEST(GraphTest, AWeightKeepsItsNameAndIsThereOnce) {
  const at::Tensor weight = at::ones({2, 3}), other = at::ones({2});
  Graph graph({{"head.weight", weight}}, Graph::Weights::fp32);
  EXPECT_EQ(graph.value(weight), "head.weight");
  EXPECT_EQ(graph.value(weight), "head.weight");
  EXPECT_NE(graph.value(other), "head.weight");
  EXPECT_EQ(graph.model().tensors.size(), 2U);
  EXPECT_FALSE(graph.varies(weight));
}

TEST(GraphTest, OnlyWeightsThatFitAreHalved) {
  const at::Tensor weight = at::ones({2, 3}), bias = at::ones({2});
  const at::Tensor large = at::full({2, 2}, 1e6), small = at::full({2, 2}, 1e-9);
  Graph graph({{"weight", weight}, {"bias", bias}, {"large", large}, {"small", small}}, Graph::Weights::fp16);
  EXPECT_EQ(graph.value(weight), "Cast_1");
  EXPECT_EQ(graph.value(bias), "bias");
  EXPECT_EQ(graph.value(large), "large");
  EXPECT_EQ(graph.value(small), "small");
  EXPECT_EQ(graph.model().tensors[0].type, onnx::Type::float16);
  EXPECT_EQ(graph.model().tensors[0].bytes.size(), 12U);
}

TEST(GraphTest, AShapeFollowsTheBatch) {
  Graph graph({}, Graph::Weights::fp32);
  graph.set_input("image");
  graph.shape({{2, 1}, {5, 0}});
  ASSERT_EQ(graph.model().nodes.size(), 2U);
  EXPECT_EQ(graph.model().nodes[0].op, "Shape");
  EXPECT_EQ(graph.model().nodes[1].op, "Concat");
  graph.shape({{2, 1}, {5, 0}});
  EXPECT_EQ(graph.model().tensors.size(), 1U);
  EXPECT_EQ(graph.batch(), graph.model().nodes[0].outputs[0]);
}

TEST(GraphTest, AViewOfWhatWasChangedInPlaceIsNotUsed) {
  Graph graph({}, Graph::Weights::fp32);
  const at::Tensor whole = at::ones({2, 2}), view = whole.select(0, 1);
  graph.bind(whole, "whole");
  graph.bind(view, "view");
  EXPECT_EQ(graph.value(view), "view");
  graph.changed(whole);
  graph.bind(whole, "changed");
  EXPECT_EQ(graph.value(whole), "changed");
  EXPECT_THROW(graph.value(view), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::exporting
