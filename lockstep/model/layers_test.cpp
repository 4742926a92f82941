// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace lockstep::model {
namespace {

class OneLayer : public PlainBlock {
 public:
  OneLayer() : PlainBlock("one") {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return input; }
};

TEST(LayersTest, SamePaddingKeepsTheSizeDividedByTheStride) {
  OneLayer block;
  Maker maker(1, at::kCPU);
  for (const int64_t kernel : {1, 3, 5}) {
    for (const int64_t stride : {1, 2}) {
      const Conv2d conv({block, maker, "c."}, {.in = 1, .out = 1, .kernel = kernel, .stride = stride});
      for (const int64_t size : {7, 8}) {
        EXPECT_EQ(conv.same_padded(at::ones({1, 1, size, size})).size(2), (size + stride - 1) / stride)
            << kernel << " " << stride << " " << size;
      }
    }
  }
}

// Numbers that would be noticed, wherever the next tensors are made.
void leave_garbage_in_free_memory() {
  std::vector<at::Tensor> garbage;
  for (int64_t size = 16; size <= 1 << 18; size *= 2) {
    for (int i = 0; i < 4; ++i) garbage.push_back(at::full({size}, 1e30F));
  }
}

TEST(LayersTest, TapsThatMeetPaddingAloneHaveNoGradientInAnyPrecision) {
  for (const auto& [kernel, size] : std::vector<std::pair<int64_t, int64_t>>{{3, 1}, {3, 2}, {5, 1}, {5, 2}, {7, 3}}) {
    std::vector<at::Tensor> gradients;
    for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      OneLayer block;
      Maker maker(1, at::kCPU);
      const Conv2d conv({block, maker, "c."},
                        {.in = 8, .out = 16, .kernel = kernel, .stride = 2, .padding = kernel / 2});
      at::Tensor& weight = block.parameters[0].tensor;
      weight = weight.detach().to(type).requires_grad_(true);
      const at::Tensor input = at::arange(4 * 8 * size * size, at::kDouble).mul(0.37).sin().view({4, 8, size, size});
      const at::Tensor output = conv(input.to(type).contiguous(at::MemoryFormat::ChannelsLast));
      leave_garbage_in_free_memory();
      output.sum().backward();
      gradients.push_back(weight.grad().to(at::kDouble));
    }
    const double largest = gradients[0].abs().max().item<double>();
    const auto off = [&](size_t i) { return (gradients[i] - gradients[0]).abs().max().item<double>() / largest; };
    EXPECT_LT(off(1), 1e-5) << kernel << " on " << size;
    EXPECT_LT(off(2), 0.02) << kernel << " on " << size;
  }
}

// Without the care of layers.cpp it writes past a workspace: a double free, mostly at once.
TEST(LayersTest, FewChannelsAndAStrideKeepTheirGradientAndTheHeap) {
  OneLayer block;
  Maker maker(1, at::kCPU);
  const Conv2d conv({block, maker, "c."}, {.in = 8, .out = 16, .stride = 2});
  const at::Tensor weight = block.parameters[0].tensor;
  const at::Tensor input = at::arange(5 * 8 * 24 * 80, at::kFloat).remainder(7).view({5, 8, 24, 80});
  const at::Tensor expected = input.slice(2, 0, c10::nullopt, 2).slice(3, 0, c10::nullopt, 2).sum({0, 2, 3});
  for (int i = 0; i < 20; ++i) {
    weight.mutable_grad() = at::Tensor();
    conv(input.contiguous(at::MemoryFormat::ChannelsLast)).sum().backward();
    EXPECT_TRUE(weight.grad().flatten(1).allclose(expected.expand({16, 8}))) << i;
  }
}

TEST(LayersTest, BatchNormUpdatesItsStatisticsInTrainingOnly) {
  OneLayer block;
  Maker maker(1, at::kCPU);
  const BatchNorm2d norm({block, maker, "n."}, 2);
  const at::Tensor input = at::ones({4, 2, 3, 3});
  norm(input, Mode::evaluate);
  EXPECT_FLOAT_EQ(block.buffers[0].tensor[0].item<float>(), 0);
  norm(input, Mode::train);
  EXPECT_FLOAT_EQ(block.buffers[0].tensor[0].item<float>(), 0.1F);
  EXPECT_FLOAT_EQ(block.buffers[1].tensor[0].item<float>(), 0.9F);
}

TEST(LayersTest, FillsHaveTheirDistribution) {
  Maker maker(3, at::kCPU);
  const at::Tensor normal = maker.make({20000}, Fill::normal(0.5));
  EXPECT_NEAR(normal.std().item<double>(), 0.5, 0.02);
  const at::Tensor uniform = maker.make({20000}, Fill::uniform(0.5));
  EXPECT_LE(uniform.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(uniform.std().item<double>(), 0.5 / 1.7320508, 0.02);
  const at::Tensor truncated = maker.make({20000}, Fill::truncated_normal(2));
  EXPECT_LE(truncated.abs().max().item<double>(), 2);
  EXPECT_GT(truncated.abs().max().item<double>(), 1.9);
}

class Plain final : public PlainBlock {
 public:
  Plain() : PlainBlock("plain") {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return input; }
};

TEST(LayersTest, ABlocksOwnGeneratorGivesTheNumbersThatLibtorchsWould) {
  const at::Tensor input = at::ones({100, 7});
  Plain block;
  at::manual_seed(5);
  const at::Tensor shared = dropout(block, input, 0.3, Mode::train);
  block.random = at::detail::createCPUGenerator(5);
  EXPECT_TRUE(dropout(block, input, 0.3, Mode::train).equal(shared));
  EXPECT_FALSE(dropout(block, input, 0.3, Mode::train).equal(shared));
  block.random = at::detail::createCPUGenerator(5);
  const at::Tensor paths = drop_path(block, input, 0.3, Mode::train);
  at::manual_seed(5);
  EXPECT_TRUE(drop_path(Plain(), input, 0.3, Mode::train).equal(paths));
}

TEST(LayersTest, DropPathDropsWholeSamplesAndKeepsTheMean) {
  const at::Tensor branch = at::ones({4000, 3});
  const at::Tensor dropped = drop_path(Plain(), branch, 0.25, Mode::train);
  EXPECT_TRUE(dropped.select(1, 0).equal(dropped.select(1, 2)));
  EXPECT_NEAR(dropped.mean().item<double>(), 1, 0.05);
  EXPECT_NEAR(dropped.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_TRUE(drop_path(Plain(), branch, 0.25, Mode::evaluate).equal(branch));
}

TEST(LayersTest, ConvolutionWeightsAreChannelsLastWithTheValuesOfTheirPlace) {
  Maker first(5, at::kCPU);
  Maker second(5, at::kCPU);
  const at::Tensor conv = first.make({4, 3, 5, 5}, Fill::normal(1));
  EXPECT_TRUE(conv.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(conv.contiguous().flatten().equal(second.make({300}, Fill::normal(1))));
}

TEST(LayersTest, TheLayoutAskedForChangesTheOrderAndNotTheValues) {
  Maker last(5, at::kCPU);
  Maker plain(5, at::kCPU, Values::fresh, spec::Layout::contiguous);
  const at::Tensor weights = plain.make({4, 3, 5, 5}, Fill::normal(1));
  EXPECT_TRUE(weights.is_contiguous());
  EXPECT_TRUE(weights.equal(last.make({4, 3, 5, 5}, Fill::normal(1))));
}

}  // namespace
}  // namespace lockstep::model
