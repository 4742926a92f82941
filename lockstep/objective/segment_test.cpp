// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/segment.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::objective {
namespace {

spec::Job pixels_job() {
  spec::Job job;
  job.task = spec::Task::segment;
  job.segment.classes = {"a", "b", "c"};
  job.model.classes = 3;
  return job;
}

// Two rows of 1 x 2 pixels and three classes; the second pixel of row 0 has no class, row 1 has none at all.
at::Tensor pixel_logits() {
  return at::tensor({1.0F, 0.0F, 0.5F, 0.0F, -1.0F, 2.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F})
      .view({2, 3, 1, 2})
      .requires_grad_(true);
}
at::Tensor pixel_labels() {
  return at::tensor({1, 255, 255, 255}, at::kByte).view({2, 1, 2});
}

TEST(SegmentTest, APixelWithoutAClassHasNoPart) {
  const auto objective = make_segment(pixels_job(), {});
  const at::Tensor map = pixel_logits();
  const at::Tensor loss = objective->loss({{"logit_map", map}}, {{"labels", pixel_labels()}}, {});
  EXPECT_NEAR(loss.item<double>(), std::log(std::exp(1) + std::exp(0.5) + std::exp(-1)) - 0.5, 1e-6);
  loss.backward();
  EXPECT_EQ(map.grad().select(3, 1).abs().sum().item<double>(), 0);
  EXPECT_EQ(map.grad()[1].abs().sum().item<double>(), 0);
  EXPECT_NEAR(map.grad()[0].select(2, 0).sum().item<double>(), 0, 1e-6);
  EXPECT_EQ(objective->sums({{"logit_map", map}}, {{"labels", pixel_labels()}})[0].item<double>(), 0);
  EXPECT_NEAR(*objective->uninformed_loss(), std::log(3.0), 1e-12);
}

TEST(SegmentTest, ClassesWeighTheirPixels) {
  spec::Job job = pixels_job();
  job.training.class_weights = {{"b", 3}};
  const auto plain =
      make_segment(pixels_job(), {})->loss({{"logit_map", pixel_logits()}}, {{"labels", pixel_labels()}}, {});
  const auto weighed = make_segment(job, {})->loss({{"logit_map", pixel_logits()}}, {{"labels", pixel_labels()}}, {});
  EXPECT_NEAR(weighed.item<double>(), 3 * plain.item<double>(), 1e-6);
}

TEST(SegmentTest, DiceIsOfEachImageOverItsClasses) {
  spec::Job job = pixels_job();
  job.segment.dice = 2;
  const at::Tensor map = pixel_logits();
  const auto plain =
      make_segment(pixels_job(), {})->loss({{"logit_map", pixel_logits()}}, {{"labels", pixel_labels()}}, {});
  const auto with = make_segment(job, {})->loss({{"logit_map", map}}, {{"labels", pixel_labels()}}, {});
  const double sum = std::exp(1) + std::exp(0.5) + std::exp(-1);
  const double p[] = {std::exp(1) / sum, std::exp(0.5) / sum, std::exp(-1) / sum};
  const double dice = (1 / (p[0] + 1) + (2 * p[1] + 1) / (p[1] + 2) + 1 / (p[2] + 1)) / 3;
  EXPECT_NEAR((with - plain).item<double>(), 2 * (1 - dice), 1e-6);
  with.backward();
  EXPECT_EQ(map.grad()[1].abs().sum().item<double>(), 0);
}

TEST(SegmentTest, TheScoreGetsLogProbabilities) {
  const HostRows rows = make_segment(pixels_job(), {})->scored({{"logit_map", pixel_logits().detach()}});
  EXPECT_EQ(rows[0].tensor.sizes().vec(), (std::vector<int64_t>{2, 6}));
  EXPECT_NEAR(rows[0].tensor[1][0].item<double>(), -std::log(3.0), 1e-6);
}

}  // namespace
}  // namespace lockstep::objective
