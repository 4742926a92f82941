// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/workspace.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

struct Measured {
  OperatorClass kind;
  NumberType type;
  std::vector<int64_t> shape;
  double mebibytes;  // on an H200
  double tolerance;
};

// Rows as measured: allocator peak during the call, less what was there before and after it.
TEST(WorkspaceTest, AgreesWithMeasuredConvolutions) {
  const auto forward = OperatorClass::convolution;
  const auto weights = OperatorClass::convolution_weight_gradient;
  const auto images = OperatorClass::convolution_input_gradient;
  const std::vector<Measured> rows = {
      {forward, NumberType::bf16, {128, 3, 224, 224, 64, 7, 7, 2, 1}, 98.05, 0.1},
      {weights, NumberType::bf16, {128, 3, 224, 224, 64, 7, 7, 2, 1}, 103.9, 1},
      {forward, NumberType::bf16, {64, 3, 224, 224, 768, 16, 16, 16, 1}, 52.0, 0.1},
      {weights, NumberType::bf16, {64, 3, 224, 224, 768, 16, 16, 16, 1}, 74.0, 6},
      {forward, NumberType::bf16, {128, 3, 224, 224, 32, 3, 3, 2, 1}, 0, 0},
      {forward, NumberType::bf16, {128, 64, 56, 56, 64, 3, 3, 1, 1}, 0, 0},
      {forward, NumberType::bf16, {128, 64, 56, 56, 256, 1, 1, 1, 1}, 0, 0},
      {weights, NumberType::bf16, {128, 576, 14, 14, 576, 3, 3, 1, 576}, 20.25, 0.1},
      {weights, NumberType::bf16, {128, 256, 14, 14, 1024, 1, 1, 1, 1}, 9.0, 8.5},
      {forward, NumberType::tf32, {64, 3, 224, 224, 64, 7, 7, 2, 1}, 36.79, 0.1},
      {weights, NumberType::tf32, {64, 3, 224, 224, 64, 7, 7, 2, 1}, 250.8, 1},
      {forward, NumberType::fp32, {32, 3, 224, 224, 64, 7, 7, 2, 1}, 0, 0},
      {forward, NumberType::fp32, {32, 256, 56, 56, 64, 1, 1, 1, 1}, 122.5, 0.1},
      {forward, NumberType::fp32, {32, 128, 56, 56, 128, 3, 3, 2, 1}, 61.81, 0.1},
      {forward, NumberType::fp32, {32, 256, 56, 56, 256, 3, 3, 1, 1}, 2576.5, 0.1},
      {forward, NumberType::fp32, {64, 128, 28, 28, 128, 3, 3, 1, 1}, 254.13, 0.1},
      {forward, NumberType::fp32, {64, 256, 14, 14, 256, 3, 3, 1, 1}, 209.0, 0.1},
      {forward, NumberType::fp32, {32, 256, 14, 14, 256, 3, 3, 1, 1}, 14.5, 0.1},
      {forward, NumberType::fp32, {64, 64, 56, 56, 64, 3, 3, 1, 1}, 98.14, 0.1},
      {images, NumberType::fp32, {64, 64, 56, 56, 64, 3, 3, 1, 1}, 183.14, 0.1},
      {images, NumberType::fp32, {128, 128, 28, 28, 192, 3, 3, 1, 1}, 395.34, 0.1},
      {images, NumberType::fp32, {64, 256, 14, 14, 256, 3, 3, 1, 1}, 26.75, 0.1},
      {forward, NumberType::bf16, {256, 64, 56, 56, 128, 1, 1, 2, 1}, 147.0, 0.1},
      {weights, NumberType::bf16, {2, 832, 7, 7, 128, 1, 1, 1, 1}, 0, 0},
      {weights, NumberType::fp32, {32, 256, 56, 56, 256, 3, 3, 1, 1}, 648.25, 0.1},
      {weights, NumberType::fp32, {32, 512, 14, 14, 512, 3, 3, 1, 1}, 141.5, 0.1},
      {weights, NumberType::fp32, {32, 512, 7, 7, 512, 3, 3, 1, 1}, 69.13, 0.1},
  };
  for (const auto& row : rows) {
    Operator call;
    call.kind = row.kind;
    call.type = row.type;
    call.shape = row.shape;
    const double found = static_cast<double>(call_workspace(call, {})) / (1 << 20);
    EXPECT_NEAR(found, row.mebibytes, row.tolerance)
        << name_of(row.kind) << " " << name_of(row.type) << " " << row.shape[1] << " to " << row.shape[4];
  }
}

int64_t of_contiguous(OperatorClass kind, NumberType type, std::vector<int64_t> shape, double bytes) {
  Operator call;
  call.kind = kind;
  call.type = type;
  call.shape = std::move(shape);
  call.bytes = bytes;
  return call_workspace(call, {}, Layout::contiguous);
}

// Tensor cores want channels-last images: each operand is copied. fp32 kernels want contiguous ones: none is.
TEST(WorkspaceTest, CopiesTheOperandsOfContiguousImages) {
  const auto forward = OperatorClass::convolution;
  const auto weights = OperatorClass::convolution_weight_gradient;
  const std::vector<int64_t> wide = {64, 128, 28, 28, 128, 3, 3, 1, 1};
  EXPECT_EQ(of_contiguous(forward, NumberType::bf16, wide, 5e7), 50'000'000);
  EXPECT_EQ(of_contiguous(forward, NumberType::tf32, wide, 1e8), 100'000'000);
  EXPECT_EQ(of_contiguous(weights, NumberType::fp16, wide, 5e7), 50'000'000 + (2 << 20));
  EXPECT_EQ(of_contiguous(weights, NumberType::tf32, wide, 1e8), 100'000'000 + (8 << 20));
  const double copies = 4.0 * (2.0 * 64 * 128 * 28 * 28 + 128 * 128 * 9);
  EXPECT_NEAR(static_cast<double>(of_contiguous(forward, NumberType::fp32, wide, 1e8)), 254.13 * (1 << 20) - copies,
              1 << 17);
}

TEST(WorkspaceTest, CopiesNothingForKernelsOfOnePixel) {
  const std::vector<int64_t> pointwise = {64, 256, 14, 14, 1024, 1, 1, 1, 1};
  for (const NumberType type : {NumberType::bf16, NumberType::tf32, NumberType::fp32})
    EXPECT_LE(of_contiguous(OperatorClass::convolution, type, pointwise, 1e8), 16) << name_of(type);
}

TEST(WorkspaceTest, ContiguousDepthwiseLayersOf32BitsAreLibtorchsOwn) {
  const std::vector<int64_t> depthwise = {128, 96, 56, 56, 96, 3, 3, 1, 96};
  const auto weights = OperatorClass::convolution_weight_gradient;
  EXPECT_EQ(of_contiguous(weights, NumberType::fp32, depthwise, 1e8), 0);
  EXPECT_EQ(of_contiguous(weights, NumberType::tf32, depthwise, 1e8), 0);
  EXPECT_EQ(of_contiguous(weights, NumberType::bf16, depthwise, 1e8), 100'000'000);
}

TEST(WorkspaceTest, HoldsTheSumsOfAttentionsGradient) {
  Operator call;
  call.name = "aten::_scaled_dot_product_flash_attention_backward";
  call.kind = OperatorClass::attention_gradient;
  call.shape = {64, 12, 197, 197, 64};
  EXPECT_EQ(call_workspace(call, {}), 64 * 12 * 256 * 65 * 4);
  call.name = "aten::_scaled_dot_product_cudnn_attention_backward";
  EXPECT_NEAR(static_cast<double>(call_workspace(call, {})), 39337216, 256);  // measured on an H200
  call.kind = OperatorClass::attention;
  EXPECT_EQ(call_workspace(call, {}), 0);
}

TEST(WorkspaceTest, HoldsTheSumsOfMemoryEfficientAttentionsGradient) {
  Operator call;
  call.name = "aten::_scaled_dot_product_efficient_attention_backward";
  call.kind = OperatorClass::attention_gradient;
  call.shape = {64, 12, 197, 197, 64};
  EXPECT_EQ(call_workspace(call, {}), 50380800);  // measured, all three
  call.shape = {16, 16, 257, 257, 88};
  EXPECT_EQ(call_workspace(call, {}), 50356224);
  call.shape = {32, 12, 50, 50, 64};
  EXPECT_EQ(call_workspace(call, {}), 6297600);
}

// ViT-B/16 at batch 64 on an H200: 132 multiprocessors of 64 warps.
TEST(WorkspaceTest, HoldsTheSumsOfABiasGradient) {
  const auto measured = [](int64_t columns, NumberType type) {
    Operator call;
    call.name = "aten::sum";
    call.kind = OperatorClass::reduction;
    call.type = type;
    call.shape = {12608, columns};
    call.bytes = 12609.0 * static_cast<double>(columns) * 2;
    return static_cast<double>(call_workspace(call, {.warps = 132 * 64}));
  };
  EXPECT_EQ(measured(3072, NumberType::bf16), 138412032);
  EXPECT_EQ(measured(768, NumberType::bf16), 77463552);
  EXPECT_NEAR(measured(2304, NumberType::bf16) / 139198464, 1, 0.005);
  EXPECT_EQ(measured(768, NumberType::fp32), 0);  // the bytes say that it is no sum over rows
}

}  // namespace
}  // namespace lockstep::forecast
