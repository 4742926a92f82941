// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/mask_targets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

// One image of 64 x 80 pixels with two slots; the first has the mask, in 16 x 16 cells, of the object in `box`.
ObjectMasks one_object(const std::vector<float>& box, const at::Tensor& mask) {
  ObjectMasks all{at::zeros({1, 2, 16, 16}, at::kByte), at::zeros({1, 2, 4}), at::tensor({64.F, 80.F}).view({1, 2})};
  all.objects[0][0].copy_(at::tensor(box));
  all.masks[0][0].narrow(0, 0, mask.size(0)).narrow(1, 0, mask.size(1)).copy_(mask);
  return all;
}

at::Tensor target(const ObjectMasks& of, const std::vector<float>& region, int64_t size = 4) {
  const MaskTargets found = mask_targets(of, at::zeros({1, 1}, at::kLong), at::tensor(region).view({1, 1, 4}), size);
  EXPECT_EQ(found.values.sizes().vec(), (std::vector<int64_t>{1, 1, size, size}));
  return found.values[0][0];
}

// The left half of a box of 8 x 8 pixels.
at::Tensor left_half() {
  at::Tensor mask = at::zeros({8, 8}, at::kByte);
  mask.narrow(1, 0, 4).fill_(1);
  return mask;
}

TEST(MaskTargetsTest, ARegionOnTheObjectShowsItsMask) {
  const at::Tensor seen = target(one_object({20, 30, 28, 38}, left_half()), {20, 30, 28, 38}, 8);
  // A sample per pixel, half a pixel to the right of and below its value: the rim of the mask is half in it.
  const at::Tensor across = at::tensor({1.F, 1.F, 1.F, 0.5F, 0.F, 0.F, 0.F, 0.F});
  EXPECT_TRUE(at::allclose(seen[0], across));
  EXPECT_TRUE(at::allclose(seen[7], across * 0.5));
}

TEST(MaskTargetsTest, ARegionBesideTheObjectShowsNothing) {
  EXPECT_TRUE(target(one_object({20, 30, 28, 38}, left_half()), {40, 40, 60, 60}).equal(at::zeros({4, 4})));
}

TEST(MaskTargetsTest, OfALargeObjectTheMaskIsScaled) {
  at::Tensor mask = at::zeros({16, 16}, at::kByte);
  mask.narrow(0, 0, 8).fill_(1);  // the upper half of 48 x 64 pixels
  const at::Tensor seen = target(one_object({10, 8, 74, 56}, mask), {10, 8, 74, 56});
  EXPECT_GT(seen[0].min().item<float>(), 0.9);
  EXPECT_GT(seen[1].min().item<float>(), 0.9);
  EXPECT_LT(seen[2].max().item<float>(), 0.15);
  EXPECT_LT(seen[3].max().item<float>(), 0.05);
}

TEST(MaskTargetsTest, AtTheRimOfTheImageTheLastPixelCounts) {
  const at::Tensor seen = target(one_object({72, 56, 80, 64}, at::ones({8, 8}, at::kByte)), {72, 56, 80, 64}, 8);
  EXPECT_TRUE(at::allclose(seen, at::ones({8, 8})));  // no zeros come in from beyond
}

TEST(MaskTargetsTest, TellsWhichRegionsHaveAMask) {
  ObjectMasks all = one_object({20, 30, 28, 38}, left_half());
  all.objects[0][1].copy_(at::tensor({1.F, 1.F, 9.F, 9.F}));  // without a mask
  const at::Tensor matches = at::tensor(std::vector<int64_t>{0, 1, -1}, at::kLong).view({1, 3});
  const MaskTargets found = mask_targets(all, matches, at::full({1, 3, 4}, 20.F), 4);
  EXPECT_TRUE(found.present.equal(at::tensor(std::vector<int64_t>{1, 0, 0}, at::kLong).view({1, 3}).to(at::kBool)));
  EXPECT_TRUE(found.values[0][2].equal(at::zeros({4, 4})));
}

TEST(MaskTargetsTest, ASimulatedCallHasTheShapeOfARealOne) {
  const auto meta = at::TensorOptions(at::kMeta);
  const MaskTargets found = mask_targets(
      {at::empty({2, 3, 16, 16}, meta.dtype(at::kByte)), at::empty({2, 3, 4}, meta), at::empty({2, 2}, meta)},
      at::empty({2, 5}, meta.dtype(at::kLong)), at::empty({2, 5, 4}, meta), 28);
  EXPECT_EQ(found.values.sizes().vec(), (std::vector<int64_t>{2, 5, 28, 28}));
  EXPECT_EQ(found.present.scalar_type(), at::kBool);
}

}  // namespace
}  // namespace lockstep::kernel
