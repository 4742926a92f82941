// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/norm_workspace.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

int64_t workspace(const std::string& name, OperatorClass kind, NumberType type, std::vector<int64_t> shape) {
  Operator call;
  call.name = "aten::" + name;
  call.kind = kind;
  call.type = type;
  call.shape = std::move(shape);
  return norm_workspace(call);
}

// Each figure is a block that the allocator of an H200 gave out during that call.
TEST(NormWorkspaceTest, IsWhatCudnnsBatchNormAsksFor) {
  const auto forward = [](NumberType type, int64_t batch, int64_t channels, int64_t side) {
    return workspace("cudnn_batch_norm", OperatorClass::batch_norm, type, {batch, channels, side, side});
  };
  EXPECT_EQ(forward(NumberType::fp32, 32, 64, 56), 810164);
  EXPECT_EQ(forward(NumberType::fp32, 64, 2048, 7), 810288);
  EXPECT_EQ(forward(NumberType::fp32, 32, 96, 28), 405624);
  EXPECT_EQ(forward(NumberType::fp32, 1, 64, 7), 1592);
  EXPECT_EQ(forward(NumberType::fp16, 128, 64, 112), 5179652);
  EXPECT_EQ(forward(NumberType::fp16, 32, 96, 28), 163104);
  EXPECT_EQ(forward(NumberType::fp16, 8, 64, 14), 6236);
  const auto backward = [](NumberType type, int64_t batch, int64_t channels, int64_t side) {
    return workspace("cudnn_batch_norm_backward", OperatorClass::batch_norm_gradient, type,
                     {batch, channels, side, side});
  };
  EXPECT_EQ(backward(NumberType::fp32, 32, 64, 56), 536612);
  EXPECT_EQ(backward(NumberType::fp32, 2, 512, 7), 9280);
  EXPECT_EQ(backward(NumberType::fp16, 128, 64, 112), 8564772);
}

TEST(NormWorkspaceTest, IsWhatLibtorchsBatchNormAsksFor) {
  const auto forward = [](int64_t batch, int64_t channels, int64_t side) {
    return workspace("native_batch_norm", OperatorClass::batch_norm, NumberType::bf16, {batch, channels, side, side});
  };
  EXPECT_EQ(forward(32, 64, 56), 131072);
  EXPECT_EQ(forward(32, 256, 14), 102400);
  EXPECT_EQ(forward(64, 2048, 7), 425984);
  EXPECT_EQ(forward(32, 96, 28), 150528);
  EXPECT_EQ(forward(8, 64, 14), 0);
  EXPECT_EQ(
      workspace("native_batch_norm_backward", OperatorClass::batch_norm_gradient, NumberType::bf16, {64, 512, 7, 7}),
      53248);
}

TEST(NormWorkspaceTest, LayerNormHasPartialSumsFromManyRowsOn) {
  const auto gradient = [](NumberType type, std::vector<int64_t> shape) {
    return workspace("native_layer_norm_backward", OperatorClass::layer_norm_gradient, type, std::move(shape));
  };
  EXPECT_EQ(gradient(NumberType::fp32, {256, 197, 768}), 0);
  EXPECT_EQ(gradient(NumberType::fp32, {512, 197, 192}), 2 * 2420736);
  EXPECT_EQ(gradient(NumberType::bf16, {400, 197, 768}), 2 * 2096640);
  EXPECT_EQ(gradient(NumberType::bf16, {300, 257, 1408}), 2 * 2095104);
}

TEST(NormWorkspaceTest, EvaluationNeedsNone) {
  Operator call;
  call.name = "aten::native_batch_norm";
  call.kind = OperatorClass::batch_norm;
  call.phase = Phase::evaluate;
  call.shape = {32, 64, 56, 56};
  EXPECT_EQ(norm_workspace(call), 0);
}

}  // namespace
}  // namespace lockstep::forecast
