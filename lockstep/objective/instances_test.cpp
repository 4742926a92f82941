// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/instances.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::objective {
namespace {

// Two images; of the second nothing was chosen, whatever its slots hold.
model::NamedTensors small_outputs() {
  const auto rows = [](std::vector<float> values, at::IntArrayRef shape) { return at::tensor(values).view(shape); };
  return {{"objectness", rows({0, 0, 9, 9, 9, 9}, {2, 3})},
          {"objectness_targets", rows({1, 0, 0, 1, 1, 1}, {2, 3})},
          {"anchors_valid", rows({1, 1, 0, 0, 0, 0}, {2, 3})},
          {"anchor_deltas", at::zeros({2, 3, 4})},
          {"anchor_targets", at::full({2, 3, 4}, 2.F)},
          {"class_logits", at::zeros({2, 4, 5})},
          {"class_targets", at::tensor(std::vector<int64_t>{3, 0, 0, -1, -1, -1, -1, -1}, at::kLong).view({2, 4})},
          {"box_deltas", at::zeros({2, 4, 4})},
          {"box_targets", at::full({2, 4, 4}, 1.F)},
          {"mask_logits", at::zeros({2, 1, 28, 28})},
          {"mask_targets", at::full({2, 1, 28, 28}, 0.25F)},
          {"masks_valid", rows({1, 0}, {2, 1})}};
}

TEST(InstancesTest, LossesAreMeansOverWhatWasChosenOfAnImage) {
  const InstanceLosses losses = instance_losses(small_outputs());
  const auto of = [](const at::Tensor& loss, int64_t image) { return loss[image].item<double>(); };
  const double off = 1.0 / 18;  // smooth L1 with beta 1/9 is |error| less this
  EXPECT_NEAR(of(losses.objectness, 0), std::log(2.0), 1e-6);
  EXPECT_NEAR(of(losses.anchor_box, 0), 4 * (2 - off) / 2, 1e-6);  // one of two anchors is on an object
  EXPECT_NEAR(of(losses.class_, 0), std::log(5.0), 1e-6);
  EXPECT_NEAR(of(losses.box, 0), 4 * (1 - off) / 3, 1e-6);  // one of three regions
  EXPECT_NEAR(of(losses.mask, 0), std::log(2.0), 1e-6);
  for (const at::Tensor& loss : {losses.objectness, losses.anchor_box, losses.class_, losses.box, losses.mask}) {
    EXPECT_EQ(of(loss, 1), 0);
  }
}

TEST(InstancesTest, TheLossIsTheSumOfAllAndTheFiguresAreItsParts) {
  const auto objective = make_instances({});
  const auto outputs = small_outputs();
  const double loss = objective->loss(outputs, {}, {}).item<double>();
  double sum = 0;
  for (const at::Tensor& part : objective->sums(outputs, {})) sum += part.item<double>();
  EXPECT_NEAR(loss, sum, 1e-5);
  EXPECT_EQ(objective->figures().size(), 5U);
  spec::Instances boxes_alone;
  boxes_alone.masks = false;
  EXPECT_EQ(make_instances(boxes_alone)->figures().size(), 4U);
}

TEST(InstancesTest, DetectionsBecomeRowsOfFloats) {
  const auto objective = make_instances({});
  const HostRows rows = objective->scored({{"boxes", at::zeros({2, 9, 4})},
                                           {"scores", at::zeros({2, 9})},
                                           {"labels", at::zeros({2, 9}, at::kLong)},
                                           {"masks", at::zeros({2, 9, 28, 28})}});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].tensor.sizes().vec(), (std::vector<int64_t>{2, 36}));
  EXPECT_EQ(rows[2].tensor.scalar_type(), at::kFloat);
  EXPECT_EQ(rows[3].tensor.sizes().vec(), (std::vector<int64_t>{2, 9 * 784}));
}

}  // namespace
}  // namespace lockstep::objective
