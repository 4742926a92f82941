// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/ordinal.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::objective {
namespace {

// Rows of the probabilities (0.5, 0.3, 0.2), whatever is added to their logits.
at::Tensor graded_logits(int64_t rows) {
  return at::tensor({0.5F, 0.3F, 0.2F}).log().add(7).expand({rows, 3}).contiguous();
}

double ordinal_loss(const at::Tensor& output, const std::vector<int64_t>& labels) {
  return make_ordinal()->loss({{"output", output}}, {{"label", at::tensor(labels, at::kLong)}}, {}).item<double>();
}

TEST(OrdinalTest, SumsTheLogarithmsOfTheBordersProbabilities) {
  const double above0 = 0.5, above1 = 0.2;
  EXPECT_NEAR(ordinal_loss(graded_logits(1), {0}), -std::log(1 - above0) - std::log(1 - above1), 1e-5);
  EXPECT_NEAR(ordinal_loss(graded_logits(1), {1}), -std::log(above0) - std::log(1 - above1), 1e-5);
  EXPECT_NEAR(ordinal_loss(graded_logits(1), {2}), -std::log(above0) - std::log(above1), 1e-5);
  EXPECT_NEAR(ordinal_loss(graded_logits(3), {0, 2, 1}),
              ordinal_loss(graded_logits(1), {0}) + ordinal_loss(graded_logits(2), {2, 1}), 1e-5);
}

TEST(OrdinalTest, TwoClassesHaveTheCrossEntropyOfAClassifier) {
  const at::Tensor two = at::tensor({0.25F, 1.5F}).reshape({1, 2});
  EXPECT_NEAR(ordinal_loss(two, {1}), std::log1p(std::exp(0.25 - 1.5)), 1e-5);
}

TEST(OrdinalTest, AnAnswerFurtherAwayCostsMore) {
  const at::Tensor sure = at::tensor({9.0F, 0.0F, 0.0F, 0.0F}).reshape({1, 4});
  EXPECT_LT(ordinal_loss(sure, {1}), ordinal_loss(sure, {2}));
  EXPECT_LT(ordinal_loss(sure, {2}), ordinal_loss(sure, {3}));
}

TEST(OrdinalTest, ARowWithoutLabelHasNoPartAndLargeLogitsHaveAFiniteGradient) {
  at::Tensor output = at::tensor({500.0F, 0.0F, -500.0F, 1.0F, 2.0F, 3.0F}).reshape({2, 3}).requires_grad_(true);
  const auto ordinal = make_ordinal();
  const model::NamedTensors fields{{"label", at::tensor({2, -1}, at::kLong)}};
  const at::Tensor loss = ordinal->loss({{"output", output}}, fields, {});
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), 500 + 1000, 1e-2);
  EXPECT_TRUE(output.grad().isfinite().all().item<bool>());
  EXPECT_EQ(output.grad()[1].abs().sum().item<double>(), 0);
  EXPECT_EQ(ordinal->sums({{"output", output}}, fields)[0].item<int64_t>(), 2);  // says 0, is 2
}

}  // namespace
}  // namespace lockstep::objective
