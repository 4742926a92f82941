// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/caption.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::objective {
namespace {

using model::NamedTensors;

// Two rows of three words; the second has no caption.
NamedTensors fields() {
  return {{"tokens", at::tensor({4, 2, 0, 0, 0, 0}, at::kLong).view({2, 3})},
          {"length", at::tensor({2, 0}, at::kLong)}};
}

TEST(CaptionObjectiveTest, PaddingAndRowsWithoutACaptionHaveNoPart) {
  spec::Job job;
  job.caption.coverage = 0;
  const auto objective = make_caption(job);
  at::Tensor logits = at::zeros({2, 3, 5});
  logits[0][0][4] = 1;
  logits.requires_grad_(true);
  const NamedTensors outputs{{"word_logits", logits}, {"attention", at::zeros({2, 3, 4})}};
  const at::Tensor loss = objective->loss(outputs, fields(), {});
  EXPECT_NEAR(loss.item<double>(), (std::log(std::exp(1.0) + 4) - 1 + std::log(5.0)) / 2, 1e-6);
  loss.backward();
  EXPECT_EQ(logits.grad()[1].abs().sum().item<double>(), 0);
  EXPECT_EQ(logits.grad()[0][2].abs().sum().item<double>(), 0);
  EXPECT_EQ(objective->sums(outputs, fields())[0].item<double>(), 0.5);  // the first of two words
}

TEST(CaptionObjectiveTest, EveryPlaceIsToBeLookedAtOnce) {
  spec::Job job;
  job.caption.coverage = 2;
  const auto attention =
      at::tensor({0.5F, 0.5F, 0.5F, 0.5F, 9.0F, 9.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F}).view({2, 3, 2});
  const NamedTensors outputs{{"word_logits", at::zeros({2, 3, 5})}, {"attention", attention}};
  EXPECT_NEAR(make_caption(job)->loss(outputs, fields(), {}).item<double>(), std::log(5.0), 1e-6);  // looked at once
  const NamedTensors away{{"word_logits", at::zeros({2, 3, 5})}, {"attention", attention * 0}};
  EXPECT_NEAR(make_caption(job)->loss(away, fields(), {}).item<double>(), std::log(5.0) + 2, 1e-6);
}

}  // namespace
}  // namespace lockstep::objective
