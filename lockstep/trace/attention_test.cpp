// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

std::string kernel_of(Attention attention, at::ScalarType type, int64_t head = 64) {
  WatchedDevice watched;
  set_attention(attention);
  const at::Tensor query = on_gpu({2, 3, 17, head}, type);
  EXPECT_EQ(at::scaled_dot_product_attention(query, query, query).sizes(), query.sizes());
  for (const auto& call : watched.finish().operators) {
    if (call.kind == forecast::OperatorClass::attention) return call.name;
  }
  return "none";
}

TEST(AttentionTest, TheGpuAndTheTypeDecideTheKernel) {
  EXPECT_EQ(kernel_of(Attention::flash, at::kBFloat16), "aten::_scaled_dot_product_flash_attention");
  EXPECT_EQ(kernel_of(Attention::cudnn, at::kHalf), "aten::_scaled_dot_product_cudnn_attention");
  EXPECT_EQ(kernel_of(Attention::flash, at::kFloat), "aten::_scaled_dot_product_efficient_attention");
  EXPECT_EQ(kernel_of(Attention::efficient, at::kHalf), "aten::_scaled_dot_product_efficient_attention");
  EXPECT_EQ(kernel_of(Attention::math, at::kHalf), "none");
  EXPECT_EQ(kernel_of(Attention::cudnn, at::kHalf, 88), "aten::_scaled_dot_product_cudnn_attention");
  EXPECT_EQ(kernel_of(Attention::cudnn, at::kHalf, 20), "aten::_scaled_dot_product_flash_attention");
  EXPECT_EQ(kernel_of(Attention::cudnn, at::kHalf, 160), "aten::_scaled_dot_product_flash_attention");
}

TEST(AttentionTest, CountsTwoProductsForwardAndFiveBackward) {
  WatchedDevice watched;
  set_attention(Attention::flash);
  const at::Tensor query = on_gpu({2, 3, 17, 64}, at::kBFloat16).requires_grad_(true);
  at::scaled_dot_product_attention(query, query, query).sum().backward();
  double forward = 0;
  double backward = 0;
  for (const auto& call : watched.finish().operators) {
    if (call.kind == forecast::OperatorClass::attention) forward = call.flops;
    if (call.kind == forecast::OperatorClass::attention_gradient) backward = call.flops;
  }
  EXPECT_EQ(forward, 4.0 * 2 * 3 * 17 * 17 * 64);
  EXPECT_EQ(backward, 2.5 * forward);
}

}  // namespace
}  // namespace lockstep::trace
