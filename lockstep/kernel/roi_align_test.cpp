// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/roi_align.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/kernel/box_math.h"

namespace lockstep::kernel {
namespace {

// Of an image of 64 x 96 pixels.
Pyramid random_maps(int64_t images, int64_t channels, at::ScalarType type = at::kFloat) {
  Pyramid maps;
  for (int64_t i = 0; i < 4; ++i) maps[static_cast<size_t>(i)] = at::randn({images, channels, 16 >> i, 24 >> i}, type);
  return maps;
}

at::Tensor boxes_of(const std::vector<float>& values, int64_t images = 1) {
  return at::tensor(values).view({images, -1, 4});
}

TEST(RoiAlignTest, ABoxIsReadFromTheMapOfItsSize) {
  const auto level = [](float side) { return level_of({0, 0, side, side}); };
  EXPECT_EQ(level(0), 0);
  EXPECT_EQ(level(111), 0);
  EXPECT_EQ(level(112), 1);
  EXPECT_EQ(level(223), 1);
  EXPECT_EQ(level(224), 2);
  EXPECT_EQ(level(448), 3);
  EXPECT_EQ(level(1e5), 3);
  EXPECT_EQ(level_of({10, 10, 4, 30}), 0);  // of a negative area
}

TEST(RoiAlignTest, ReadsARampWhereTheBoxIs) {
  Pyramid maps = random_maps(1, 1);
  maps[0] = at::arange(24, at::kFloat).view({1, 1, 1, 24}).expand({1, 1, 16, 24}).contiguous();  // value = column
  const at::Tensor seen = roi_align(maps, boxes_of({8, 8, 36, 22}), {.size = 7, .sampling = 2});
  EXPECT_EQ(seen.sizes().vec(), (std::vector<int64_t>{1, 1, 7, 7}));
  // From column 2 to 9 in 7 bins of one: their middles.
  EXPECT_TRUE(at::allclose(seen[0][0][3], at::arange(7, at::kFloat) + 2.5));
}

TEST(RoiAlignTest, BeyondTheMapThereIsNothingAndAtItsRimTheLastPixel) {
  Pyramid maps = random_maps(1, 2);
  maps[0] = at::ones({1, 2, 16, 24});
  const auto mean = [&](const std::vector<float>& box) {
    return roi_align(maps, boxes_of(box), {.size = 2, .sampling = 2}).mean().item<float>();
  };
  EXPECT_EQ(mean({0, 0, 96, 64}), 1);
  EXPECT_EQ(mean({200, 200, 240, 240}), 0);
  EXPECT_EQ(mean({-240, -240, -200, -200}), 0);
  EXPECT_EQ(mean({0, 0, 0, 0}), 1);  // taken for one of a pixel
}

TEST(RoiAlignTest, TheGradientIsTheTransposedOperator) {
  Pyramid maps = random_maps(2, 3, at::kDouble);
  for (auto& map : maps) map.requires_grad_(true);
  const at::Tensor boxes = boxes_of({3, 5, 40, 33, -10, -7, 20,  90,  60, 10, 60, 10,  //
                                     0, 0, 96, 64, 10,  10, 200, 230, 90, 60, 99, 70},
                                    2);
  const at::Tensor seen = roi_align(maps, boxes, {.size = 3, .sampling = 2});
  const at::Tensor direction = at::randn(seen.sizes(), at::kDouble);
  (seen * direction).sum().backward();
  double product = 0;
  for (const auto& map : maps) product += (map.grad() * map.detach()).sum().item<double>();
  EXPECT_NEAR(product, (seen * direction).sum().item<double>(), 1e-9);  // linear: <A x, g> = <x, A' g>
  EXPECT_GT(maps[0].grad().abs().sum().item<double>(), 0);
  EXPECT_GT(maps[1].grad().abs().sum().item<double>(), 0);

  // And numerically, at a pixel that samples fall on.
  const auto value = [&](double change) {
    Pyramid moved = maps;
    moved[0] = maps[0].detach().clone();
    moved[0][0][1][4][5] += change;
    return (roi_align(moved, boxes, {.size = 3, .sampling = 2}) * direction).sum().item<double>();
  };
  EXPECT_NEAR(maps[0].grad()[0][1][4][5].item<double>(), (value(1e-3) - value(-1e-3)) / 2e-3, 1e-8);
}

TEST(RoiAlignTest, GivesTheSameBitsWhateverTheThreadsAndTheLayout) {
  const at::Tensor boxes = boxes_of({3, 5, 40, 33, -10, -7, 20, 90, 60, 10, 200, 120}, 1).expand({2, 3, 4});
  const Pyramid maps = random_maps(2, 70);
  const auto run = [&](int threads, at::MemoryFormat format) {
    at::set_num_threads(threads);
    Pyramid own;
    for (size_t i = 0; i < own.size(); ++i) own[i] = maps[i].clone(format).requires_grad_(true);
    const at::Tensor seen = roi_align(own, boxes, {.size = 7, .sampling = 2});
    (seen * at::arange(seen.numel(), at::kFloat).view(seen.sizes())).sum().backward();
    return std::vector<at::Tensor>{seen.detach(), own[0].grad(), own[1].grad()};
  };
  const int threads = at::get_num_threads();
  const auto one = run(1, at::MemoryFormat::Contiguous), three = run(3, at::MemoryFormat::ChannelsLast);
  at::set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(three[i])) << i;
}

TEST(RoiAlignTest, SixteenBitMapsAreAddedUpExactly) {
  Pyramid maps = random_maps(1, 4);
  for (auto& map : maps) map = map.to(at::kBFloat16);
  Pyramid wide;
  for (size_t i = 0; i < maps.size(); ++i) wide[i] = maps[i].to(at::kFloat);
  const at::Tensor boxes = boxes_of({3, 5, 40, 33});
  const at::Tensor seen = roi_align(maps, boxes, {});
  EXPECT_EQ(seen.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(seen.equal(roi_align(wide, boxes, {}).to(at::kBFloat16)));
}

TEST(RoiAlignTest, ASimulatedCallHasTheShapeOfARealOne) {
  Pyramid maps;
  for (auto& map : maps) map = at::empty({2, 8, 4, 4}, at::TensorOptions(at::kMeta)).requires_grad_(true);
  const at::Tensor seen = roi_align(maps, at::empty({2, 5, 4}, at::kMeta), {.size = 14});
  EXPECT_EQ(seen.sizes().vec(), (std::vector<int64_t>{10, 8, 14, 14}));
  EXPECT_TRUE(seen.is_contiguous(at::MemoryFormat::ChannelsLast));
}

}  // namespace
}  // namespace lockstep::kernel
