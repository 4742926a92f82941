// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/fused_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/forecast/kernel_grid.h"

namespace lockstep::kernel {
namespace {

using forecast::BatchNormGrid;

TEST(FusedBatchNormTest, TheReferenceIsLibtorchsOperatorsOneByOne) {
  for (const bool added : {false, true}) {
    for (const bool relu : {false, true}) {
      const auto leaf = [](const at::Tensor& value) { return value.clone().requires_grad_(true); };
      const at::Tensor x = at::randn({3, 16, 4, 5}, at::kDouble), more = at::randn({3, 16, 4, 5}, at::kDouble);
      const at::Tensor weight = at::rand({16}, at::kDouble), bias = at::randn({16}, at::kDouble);
      const at::Tensor push = at::randn({3, 16, 4, 5}, at::kDouble);
      const FusedBatchNorm call{leaf(x),
                                added ? leaf(more) : at::Tensor(),
                                leaf(weight),
                                leaf(bias),
                                at::zeros({16}, at::kDouble),
                                at::ones({16}, at::kDouble),
                                0.1,
                                1e-5,
                                relu};
      const at::Tensor output = fused_batch_norm(call);
      output.backward(push);
      const at::Tensor x2 = leaf(x), more2 = leaf(more), weight2 = leaf(weight), bias2 = leaf(bias);
      const at::Tensor mean = at::zeros({16}, at::kDouble), variance = at::ones({16}, at::kDouble);
      at::Tensor wanted = at::batch_norm(x2, weight2, bias2, mean, variance, true, 0.1, 1e-5, false);
      if (added) wanted = wanted + more2;
      if (relu) wanted = wanted.relu();
      wanted.backward(push);
      EXPECT_TRUE(at::allclose(output, wanted));
      EXPECT_TRUE(at::allclose(call.running_mean, mean));
      EXPECT_TRUE(at::allclose(call.running_variance, variance));
      EXPECT_TRUE(at::allclose(call.input.grad(), x2.grad()));
      EXPECT_TRUE(at::allclose(call.weight.grad(), weight2.grad()));
      EXPECT_TRUE(at::allclose(call.bias.grad(), bias2.grad()));
      if (added) {
        EXPECT_TRUE(at::allclose(call.added.grad(), more2.grad()));
      }
    }
  }
}

TEST(FusedBatchNormTest, ACpuKeepsLibtorchs) {
  EXPECT_FALSE(
      takes_fused_batch_norm(at::zeros({2, 8, 4, 4}, at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast)));
}

TEST(FusedBatchNormTest, BlocksCoverEveryChannelOnce) {
  for (int64_t channels = 8; channels <= 2048; channels += 8) {
    const BatchNormGrid grid(1000, channels);
    EXPECT_GE(grid.blocks_across * grid.vectors * BatchNormGrid::kVector, channels);
    EXPECT_LT((grid.blocks_across - 1) * grid.vectors * BatchNormGrid::kVector, channels);
    EXPECT_GE(grid.rows_at_once, 8);
    EXPECT_LE(grid.vectors * grid.rows_at_once, BatchNormGrid::kThreads);
  }
}

}  // namespace
}  // namespace lockstep::kernel
