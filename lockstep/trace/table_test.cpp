// SPDX-License-Identifier: Apache-2.0
// The same operators on the CPU and on the simulated GPU give results of the same sizes, strides and type.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

using Unary = std::function<at::Tensor(const at::Tensor&)>;

TEST(TableTest, ResultsLieAsOnTheCpu) {
  const WatchedDevice watched;
  const Unary operators[] = {
      [](const auto& x) { return x + 1; },
      [](const auto& x) { return x.to(at::kBFloat16) * x; },
      [](const auto& x) { return x.eq(0); },
      [](const auto& x) { return at::relu(x); },
      [](const auto& x) { return x.floor(); },
      [](const auto& x) { return x.clamp_min(1); },
      [](const auto& x) { return x.clamp_max(1); },
      [](const auto& x) { return x.sgn(); },
      [](const auto& x) { return x.logical_and(x); },
      [](const auto& x) { return at::gelu(x); },
      [](const auto& x) { return at::hardtanh(x, 0, 6); },
      [](const auto& x) { return at::isfinite(x); },
      [](const auto& x) { return x.sum(); },
      [](const auto& x) {
        return x.mean({2, 3});
      },
      [](const auto& x) { return x.abs().norm(); },
      [](const auto& x) { return x.argmax(1); },
      [](const auto& x) { return at::log_softmax(x, 1); },
      [](const auto& x) {
        return at::cat({x, x}, 1);
      },
      [](const auto& x) {
        return at::stack({x, x});
      },
      [](const auto& x) {
        return at::avg_pool2d(x, {2, 2}, {2, 2});
      },
      [](const auto& x) {
        return std::get<1>(at::max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1}));
      },
      [](const auto& x) { return x.flatten(1).matmul(x.flatten(1).t()); },
      [](const auto& x) {
        return x.permute({0, 2, 3, 1}).contiguous();
      },
  };
  size_t index = 0;
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (const auto& op : operators) {
      const at::Tensor host = at::zeros({2, 6, 8, 8}).contiguous(format);
      EXPECT_EQ(layout(op(on_gpu({2, 6, 8, 8}, at::kFloat, format))), layout(op(host))) << "operator " << index++;
    }
  }
}

TEST(TableTest, ASumOfTruthsIsTheirNumber) {
  const WatchedDevice watched;
  const at::Tensor targets = on_gpu({12}, at::kLong);
  EXPECT_EQ(targets.ge(0).sum().item<int64_t>(), 12);
  EXPECT_TRUE(at::isfinite(on_gpu({7})).all().item<bool>());
  EXPECT_EQ(on_gpu({7}).sum().item<double>(), 1);
}

TEST(TableTest, AProductCountsItsMatricesAlone) {
  WatchedDevice watched;
  at::addmm(on_gpu({5}), on_gpu({3, 4}), on_gpu({4, 5}));
  const auto recording = watched.finish();
  ASSERT_EQ(recording.operators.size(), 1);
  EXPECT_EQ(recording.operators[0].shape, (std::vector<int64_t>{1, 3, 5, 4}));
  EXPECT_EQ(recording.operators[0].flops, 120);
  EXPECT_EQ(recording.operators[0].bytes, 4 * (5 + 12 + 20 + 15));
}

TEST(TableTest, InPlaceReadsAndWrites) {
  WatchedDevice watched;
  on_gpu({256}).relu_();
  on_gpu({256}).zero_();
  const auto recording = watched.finish();
  ASSERT_EQ(recording.operators.size(), 2);
  EXPECT_EQ(recording.operators[0].bytes, 2048);
  EXPECT_EQ(recording.operators[1].bytes, 1024);
}

}  // namespace
}  // namespace lockstep::trace
