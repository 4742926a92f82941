// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_adaptive_avg_pool2d.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

TEST(KernelsTest, WhatGoesToTheHostIsZero) {
  const WatchedDevice watched;
  const at::Tensor host = on_gpu({3}, at::kLong).to(at::kCPU);
  EXPECT_TRUE(host.is_cpu());
  EXPECT_EQ(host.sum().item<int64_t>(), 0);
}

TEST(KernelsTest, ACopyFromTheHostIsABirthAndNoKernel) {
  WatchedDevice watched;
  const at::Tensor gpu = at::zeros({2, 3}).to(SimulatedDevice::device());
  const auto recording = watched.finish();
  ASSERT_EQ(recording.events.size(), 2);
  EXPECT_EQ(recording.events[0].bytes, 24);
  EXPECT_EQ(recording.operators[0].kind, forecast::OperatorClass::host);
  EXPECT_EQ(recording.operators[0].launches, 0);
}

TEST(KernelsTest, TheGradientOfATableHasItsRows) {
  WatchedDevice watched;
  const at::Tensor gradient =
      at::embedding_dense_backward(on_gpu({7, 3, 16}), on_gpu({7, 3}, at::kLong), /*num_weights=*/40, -1, false);
  EXPECT_EQ(gradient.sizes().vec(), (std::vector<int64_t>{40, 16}));
  const auto recording = watched.finish();
  ASSERT_EQ(recording.operators.size(), 1);
  EXPECT_EQ(recording.operators[0].kind, forecast::OperatorClass::indexing);
}

TEST(KernelsTest, ARangeHasAsManyElementsAsOnTheCpu) {
  WatchedDevice watched;
  EXPECT_EQ(at::arange(5, on_gpu({1}, at::kLong).options()).sizes(), at::arange(5).sizes());
  EXPECT_EQ(at::arange(1, 8, 3, on_gpu({1}).options()).sizes(), at::arange(1, 8, 3).sizes());
  EXPECT_TRUE(watched.finish().estimated.empty());
}

TEST(KernelsTest, ResultsLieAsOnTheCpu) {
  const WatchedDevice watched;
  const auto check = [](const auto& op) {
    EXPECT_EQ(layout(op(on_gpu({2, 6, 8, 8}, at::kFloat, at::MemoryFormat::ChannelsLast))),
              layout(op(at::zeros({2, 6, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast))));
  };
  check([](const at::Tensor& x) { return at::_adaptive_avg_pool2d(x, {4, 4}); });
  check([](const at::Tensor& x) { return std::get<1>(at::native_dropout(x, 0.5, true)); });
  check([](const at::Tensor& x) { return at::where(x.flatten() > 0, x.flatten(), x.flatten()); });
  check([](const at::Tensor& x) { return at::_foreach_norm({x, x}, 2)[0]; });
  check([](const at::Tensor& x) {
    return at::index_select(x.contiguous(), 0, at::zeros({3}, x.options().dtype(at::kLong)));
  });
}

}  // namespace
}  // namespace lockstep::trace
