// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/convolution.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

using forecast::OperatorClass;

TEST(ConvolutionTest, GivesTheSizesOfTheCpu) {
  const WatchedDevice watched;
  struct Case {
    std::vector<int64_t> input, weight;
    int64_t stride, padding, groups;
  };
  const Case cases[] = {{{2, 3, 15, 17}, {8, 3, 7, 7}, 2, 3, 1},
                        {{2, 8, 9, 9}, {8, 1, 3, 3}, 1, 1, 8},
                        {{2, 8, 9, 9}, {4, 8, 1, 1}, 2, 0, 1}};
  for (const auto& [input, weight, stride, padding, groups] : cases) {
    const auto host = at::conv2d(at::zeros(input), at::zeros(weight), {}, stride, padding, 1, groups);
    const auto format = at::MemoryFormat::ChannelsLast;
    const auto gpu = at::conv2d(on_gpu(input, at::kFloat, format), on_gpu(weight, at::kFloat, format), {}, stride,
                                padding, 1, groups);
    EXPECT_EQ(gpu.sizes(), host.sizes());
    EXPECT_TRUE(gpu.is_contiguous(format));
  }
}

TEST(ConvolutionTest, ATransposedOneSpreadsEveryPixel) {
  WatchedDevice watched;
  const auto format = at::MemoryFormat::ChannelsLast;
  const at::Tensor input = on_gpu({2, 6, 7, 5}, at::kFloat, format).requires_grad_();
  const at::Tensor weight = on_gpu({6, 4, 3, 3}, at::kFloat, format).requires_grad_();
  const at::Tensor output = at::conv_transpose2d(input, weight, {}, 2);
  EXPECT_EQ(output.sizes(), at::conv_transpose2d(at::zeros({2, 6, 7, 5}), at::zeros({6, 4, 3, 3}), {}, 2).sizes());
  output.sum().backward();
  EXPECT_EQ(layout(input.grad()), layout(input));
  EXPECT_EQ(layout(weight.grad()), layout(weight));
  double flops = 0;
  for (const auto& call : watched.finish().operators) flops += call.flops;
  EXPECT_EQ(flops, 3 * 2.0 * (2 * 6 * 7 * 5) * 4 * 9);
}

TEST(ConvolutionTest, BackwardIsTwoCallsEachAfterItsOutput) {
  WatchedDevice watched;
  const auto format = at::MemoryFormat::ChannelsLast;
  const at::Tensor input = on_gpu({2, 4, 8, 8}, at::kBFloat16, format);
  const at::Tensor weight = on_gpu({6, 4, 3, 3}, at::kBFloat16, format);
  const at::Tensor gradient = on_gpu({2, 6, 8, 8}, at::kBFloat16, format);
  const auto [of_input, of_weight, of_bias] = at::convolution_backward(
      gradient, input, weight, at::OptionalIntArrayRef({6}), at::IntArrayRef{1, 1}, at::IntArrayRef{1, 1},
      at::IntArrayRef{1, 1}, false, at::IntArrayRef{0, 0}, 1, {true, true, true});
  EXPECT_EQ(layout(of_input), layout(input));
  EXPECT_EQ(layout(of_weight), layout(weight));
  EXPECT_EQ(of_bias.sizes(), at::IntArrayRef({6}));
  const auto recording = watched.finish();
  ASSERT_EQ(recording.operators.size(), 3);
  EXPECT_EQ(recording.operators[0].kind, OperatorClass::convolution_input_gradient);
  EXPECT_EQ(recording.operators[1].kind, OperatorClass::convolution_weight_gradient);
  EXPECT_EQ(recording.operators[2].kind, OperatorClass::reduction);
  EXPECT_EQ(recording.operators[1].flops, 2.0 * 2 * 6 * 8 * 8 * 4 * 9);
  EXPECT_EQ(recording.operators[1].shape, (std::vector<int64_t>{2, 4, 8, 8, 6, 3, 3, 1, 1}));
  using forecast::EventKind;
  EXPECT_EQ(recording.events[3].kind, EventKind::birth);
  EXPECT_EQ(recording.events[4].kind, EventKind::run);
  EXPECT_EQ(recording.events[5].kind, EventKind::birth);
  EXPECT_EQ(recording.events[6].kind, EventKind::run);
}

}  // namespace
}  // namespace lockstep::trace
