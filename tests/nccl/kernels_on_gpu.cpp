// SPDX-License-Identifier: Apache-2.0
// The operators of room kernel on a GPU give what they give on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "lockstep/kernel/boxes.h"
#include "lockstep/kernel/mask_targets.h"
#include "lockstep/kernel/match.h"
#include "lockstep/kernel/nms.h"
#include "lockstep/kernel/roi_align.h"

namespace lockstep::kernel {
namespace {

const at::Device kGpu(at::kCUDA, 0);

at::Tensor random_boxes(int64_t images, int64_t count) {
  const at::Tensor corner = at::rand({images, count, 2}) * 600;
  return at::cat({corner, corner + at::rand({images, count, 2}).pow(3) * 400}, 2);
}

void expect_close(const at::Tensor& gpu, const at::Tensor& cpu, double tolerance = 1e-4) {
  EXPECT_EQ(gpu.scalar_type(), cpu.scalar_type());
  EXPECT_TRUE(at::allclose(gpu.to(at::kCPU).to(at::kFloat), cpu.to(at::kFloat), tolerance, tolerance));
}

TEST(KernelsOnGpuTest, Boxes) {
  const std::vector<Grid> grids{{50, 76}, {25, 38}, {13, 19}};
  EXPECT_TRUE(
      anchors(at::ones({1}).to(kGpu), grids, 800, 1216).to(at::kCPU).equal(anchors(at::ones({1}), grids, 800, 1216)));
  const at::Tensor boxes = random_boxes(2, 500), wanted = random_boxes(2, 500);
  const at::Tensor deltas = at::randn({2, 500, 3, 4}), shown = at::tensor({600.F, 800.F, 500.F, 700.F}).view({2, 2});
  const BoxCoder coder{.position = 10, .size = 5};
  expect_close(decode_boxes(boxes.to(kGpu), deltas.to(kGpu), shown.to(kGpu), coder),
               decode_boxes(boxes, deltas, shown, coder), 1e-3);
  expect_close(encode_boxes(boxes.to(kGpu), wanted.to(kGpu), coder), encode_boxes(boxes, wanted, coder), 1e-3);
}

TEST(KernelsOnGpuTest, Nms) {
  for (const int64_t count : {1, 63, 64, 65, 8741}) {
    const at::Tensor boxes = random_boxes(3, count), groups = at::randint(5, {3, count}, at::kLong);
    at::Tensor scores = at::rand({3, count});
    scores.masked_fill_(scores < 0.1, -1);
    for (const int64_t slots : {10, 2000}) {
      const Kept cpu = nms(boxes, scores, groups, 0.5, slots);
      const Kept gpu = nms(boxes.to(kGpu), scores.to(kGpu), groups.to(kGpu), 0.5, slots);
      EXPECT_TRUE(gpu.valid.to(at::kCPU).equal(cpu.valid)) << count;
      EXPECT_TRUE(gpu.indices.to(at::kCPU).equal(cpu.indices)) << count;
    }
  }
}

TEST(KernelsOnGpuTest, Match) {
  const at::Tensor boxes = random_boxes(1, 20000), objects = random_boxes(4, 30),
                   labels = at::randint(3, {4, 30}, at::kLong);
  for (const bool best : {false, true}) {
    const MatchOptions options{.low = 0.3, .high = 0.7, .best_of_object = best};
    EXPECT_TRUE(match(boxes.to(kGpu), objects.to(kGpu), labels.to(kGpu), options)
                    .to(at::kCPU)
                    .equal(match(boxes, objects, labels, options)));
  }
}

TEST(KernelsOnGpuTest, RoiAlignAndItsGradient) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t channels : {256, 7}) {
      const at::Tensor boxes = random_boxes(2, 40);
      Pyramid cpu, gpu;
      for (size_t i = 0; i < cpu.size(); ++i) {
        cpu[i] = at::randn({2, channels, 160 >> i, 200 >> i}).to(type).requires_grad_(true);
        gpu[i] = cpu[i].detach().to(kGpu).requires_grad_(true);
      }
      const at::Tensor here = roi_align(cpu, boxes, {}), there = roi_align(gpu, boxes.to(kGpu), {});
      const double tolerance = type == at::kFloat ? 1e-4 : 2e-2;
      expect_close(there.detach(), here.detach(), tolerance);
      const at::Tensor direction = at::randn(here.sizes()).to(type);
      (here * direction).sum().backward();
      (there * direction.to(kGpu)).sum().backward();
      for (size_t i = 0; i < cpu.size(); ++i) expect_close(gpu[i].grad(), cpu[i].grad(), tolerance);
    }
  }
}

TEST(KernelsOnGpuTest, MaskTargets) {
  const ObjectMasks cpu{at::rand({2, 9, 112, 112}).gt(0.5).to(at::kByte), random_boxes(2, 9),
                        at::tensor({600.F, 800.F, 500.F, 700.F}).view({2, 2})};
  const at::Tensor matches = at::randint(10, {2, 50}, at::kLong) - 1;
  const at::Tensor regions = random_boxes(2, 50);
  const MaskTargets here = mask_targets(cpu, matches, regions, 28);
  const MaskTargets there = mask_targets({cpu.masks.to(kGpu), cpu.objects.to(kGpu), cpu.shown.to(kGpu)},
                                         matches.to(kGpu), regions.to(kGpu), 28);
  expect_close(there.values, here.values);
  EXPECT_TRUE(there.present.to(at::kCPU).equal(here.present));
}

}  // namespace
}  // namespace lockstep::kernel
