// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/calls.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

TEST(CallsTest, KeepsWhatOurCodeCallsAndNotWhatThatCalls) {
  const at::Tensor image = at::ones({2, 3, 8, 8}), weight = at::ones({4, 3, 3, 3});
  const auto calls = record_calls([&] {
    at::Tensor map = at::conv2d(image, weight, {}, 2, 1).relu_();
    at::cat({map, map}).view({4, -1});
  });
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[0].name, "aten::conv2d");
  EXPECT_EQ(calls[1].name, "aten::relu_");
  EXPECT_TRUE(calls[1].is_in_place());
  EXPECT_EQ(calls[3].name, "aten::view");
  EXPECT_TRUE(calls[0].outputs[0].toTensor().is_same(calls[1].inputs[0].toTensor()));
  EXPECT_TRUE(calls[0].outputs[0].toTensor().is_same(calls[1].outputs[0].toTensor()));
  EXPECT_EQ(tensors_in(calls[0].inputs).size(), 2U);
  EXPECT_EQ(tensors_in(calls[2].inputs).size(), 2U);  // of a list
  at::ones({1}).relu();                               // nobody listens any more
}

}  // namespace
}  // namespace lockstep::model
