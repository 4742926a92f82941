// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

at::Tensor normed(const at::Tensor& input) {
  const auto vector = [&] { return on_gpu({input.size(1)}); };
  return at::batch_norm(input, vector(), vector(), vector(), vector(), true, 0.1, 1e-5, true);
}

TEST(NormsTest, LibtorchItselfChoosesWhoseBatchNormItIs) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    WatchedDevice watched;
    const at::Tensor input = on_gpu({4, 8, 6, 6}, type, at::MemoryFormat::ChannelsLast);
    EXPECT_EQ(layout(normed(input)), layout(input));
    const auto recording = watched.finish();
    ASSERT_EQ(recording.operators.size(), 1);
    EXPECT_EQ(recording.operators[0].name, type == at::kFloat ? "aten::cudnn_batch_norm" : "aten::native_batch_norm");
    EXPECT_EQ(recording.operators[0].kind, forecast::OperatorClass::batch_norm);
  }
}

TEST(NormsTest, LayerNormGivesTheLayoutsOfTheCpu) {
  const WatchedDevice watched;
  const auto host = at::native_layer_norm(at::zeros({2, 5, 8}), {8}, at::zeros({8}), at::zeros({8}), 1e-6);
  const auto gpu = at::native_layer_norm(on_gpu({2, 5, 8}), {8}, on_gpu({8}), on_gpu({8}), 1e-6);
  EXPECT_EQ(layout(std::get<0>(gpu)), layout(std::get<0>(host)));
  EXPECT_EQ(layout(std::get<1>(gpu)), layout(std::get<1>(host)));
  EXPECT_EQ(layout(std::get<2>(gpu)), layout(std::get<2>(host)));
  const auto back = at::native_layer_norm_backward(on_gpu({2, 5, 8}), on_gpu({2, 5, 8}), {8}, std::get<1>(gpu),
                                                   std::get<2>(gpu), on_gpu({8}), on_gpu({8}), {true, true, true});
  EXPECT_EQ(std::get<0>(back).sizes(), at::IntArrayRef({2, 5, 8}));
  EXPECT_EQ(std::get<1>(back).sizes(), at::IntArrayRef({8}));
}

}  // namespace
}  // namespace lockstep::trace
