// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/classify.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include <cmath>

namespace lockstep::objective {
namespace {

at::Tensor logits() {
  return at::arange(12, at::kFloat).view({4, 3}).sin();  // [rows 4, classes 3]
}

at::Tensor targets(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

TEST(ClassifyTest, SumsMinusTheLogProbabilityOfTheTargets) {
  const at::Tensor log = at::log_softmax(logits(), 1);
  const double expected = -(log[0][2] + log[1][0] + log[2][1] + log[3][1]).item<double>();
  EXPECT_NEAR(cross_entropy_sum(logits(), {}, targets({2, 0, 1, 1}), {}, {}).item<double>(), expected, 1e-5);
}

TEST(ClassifyTest, ARowWithoutTargetHasNoPartInLossAndGradient) {
  at::Tensor all = logits().requires_grad_(true);
  cross_entropy_sum(all, {}, targets({2, -1, 1, 1}), {}, {.label_smoothing = 0.1}).backward();
  EXPECT_EQ(all.grad()[1].abs().sum().item<double>(), 0);
  EXPECT_GT(all.grad()[0].abs().sum().item<double>(), 0);
  EXPECT_EQ(count_correct(at::tensor({1.0, 0.0, 0.0, 1.0}, at::kFloat).view({2, 2}), targets({-1, 1})).item<int64_t>(),
            1);
}

TEST(ClassifyTest, SmoothingSpreadsItsShareOverAllClasses) {
  const at::Tensor log = at::log_softmax(logits().narrow(0, 0, 1), 1)[0];
  const double expected = -(0.9 * log[2].item<double>() + 0.1 * log.mean().item<double>());
  EXPECT_NEAR(
      cross_entropy_sum(logits().narrow(0, 0, 1), {}, targets({2}), {}, {.label_smoothing = 0.1}).item<double>(),
      expected, 1e-5);
}

// torchvision.ops.sigmoid_focal_loss(x, [1, 0, 1], alpha=-1, gamma, "sum") of torchvision 0.26 and its gradient: the
// softmax of (0, x) is the sigmoid of x.
TEST(FocalLossTest, OfTwoClassesIsTorchvisionsOfASigmoid) {
  struct Case {
    double gamma, loss;
    std::vector<float> gradient;
  };
  for (const Case& expected : {Case{0.5, 2.2015145, {-0.8795726F, 0.5570780F, -0.0604553F}},
                               Case{2, 1.4001077, {-0.9614247F, 0.4062434F, -0.0048709F}}}) {
    at::Tensor x = at::tensor({-1.5F, 0.25F, 2.0F}).requires_grad_(true);
    const at::Tensor two = at::stack({at::zeros({3}), x}, 1);  // [rows, classes 2]
    const at::Tensor loss = cross_entropy_sum(two, {}, targets({1, 0, 1}), {}, {.focal_gamma = expected.gamma});
    loss.backward();
    EXPECT_NEAR(loss.item<double>(), expected.loss, 1e-5);
    EXPECT_TRUE(at::allclose(x.grad(), at::tensor(expected.gradient), 1e-4, 1e-6)) << x.grad();
  }
}

TEST(FocalLossTest, WithoutAnExponentIsTheCrossEntropyWithItsSmoothingWeightsAndMix) {
  Mix mix;
  mix.lambda = 0.3;
  mix.partner = targets({1, 2, 0, 3});
  LossOptions options{.label_smoothing = 0.1, .class_weights = at::tensor({1.0F, 3.0F, 0.5F})};
  for (const auto& mixed : {std::optional<Mix>(), std::optional(mix)}) {
    options.focal_gamma = 0;
    const double plain = cross_entropy_sum(logits(), {}, targets({2, 0, -1, 1}), mixed, options).item<double>();
    options.focal_gamma = 1e-9;
    EXPECT_NEAR(cross_entropy_sum(logits(), {}, targets({2, 0, -1, 1}), mixed, options).item<double>(), plain, 1e-5);
    options.focal_gamma = 2;
    EXPECT_LT(cross_entropy_sum(logits(), {}, targets({2, 0, -1, 1}), mixed, options).item<double>(), 0.8 * plain);
  }
}

TEST(FocalLossTest, HasAFiniteGradientWhereTheNetworkIsCertain) {
  at::Tensor certain = at::tensor({200.0F, 0.0F}).reshape({1, 2}).requires_grad_(true);
  cross_entropy_sum(certain, {}, targets({0}), {}, {.focal_gamma = 0.5}).backward();
  EXPECT_EQ(certain.grad().abs().sum().item<double>(), 0);
}

TEST(ClassifyTest, AuxiliaryHeadsCountWithTheirWeight) {
  const double one = cross_entropy_sum(logits(), {}, targets({2, 0, 1, 1}), {}, {}).item<double>();
  const double all =
      cross_entropy_sum(logits(), {logits(), logits()}, targets({2, 0, 1, 1}), {}, {.auxiliary_weight = 0.3})
          .item<double>();
  EXPECT_NEAR(all, 1.6 * one, 1e-4);
}

TEST(MixTest, IsOffUnlessAskedFor) {
  EXPECT_FALSE(draw_mix(spec::Training{}, {0, 0}, targets({0, 1}), 8).has_value());
}

TEST(MixTest, DependsOnSeedEpochAndStepOnly) {
  spec::Training training;
  training.mixup = 0.4;
  const auto one = draw_mix(training, {1, 7}, targets({0, 1, 2}), 8);
  const auto two = draw_mix(training, {1, 7}, targets({5, 6}), 8);
  EXPECT_EQ(one->lambda, two->lambda);
  EXPECT_NE(one->lambda, draw_mix(training, {1, 8}, targets({0}), 8)->lambda);
  EXPECT_NE(one->lambda, draw_mix(training, {2, 7}, targets({0}), 8)->lambda);
}

TEST(MixTest, BetaHasItsMeanAndSpread) {
  spec::Training training;
  training.mixup = 0.4;
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 4000;
  for (int step = 0; step < kDraws; ++step) {
    const double lambda = draw_mix(training, {0, step}, targets({0}), 8)->lambda;
    sum += lambda;
    squares += lambda * lambda;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_NEAR(squares / kDraws - mean * mean, 1 / (4 * (2 * 0.4 + 1)), 0.01);  // variance of Beta(a, a)
}

TEST(MixTest, MixupBlendsARowWithTheNextThatHasATarget) {
  spec::Training training;
  training.mixup = 1;
  const auto mix = draw_mix(training, {0, 3}, targets({0, -1, 1}), 2);
  const at::Tensor images = at::arange(3, at::kFloat).view({3, 1, 1, 1}).expand({3, 3, 2, 2}).contiguous();
  const at::Tensor mixed = mix_images(images, *mix);
  EXPECT_NEAR(mixed[0][0][0][0].item<double>(), 2 * (1 - mix->lambda), 1e-6);
  EXPECT_NEAR(mixed[1][0][0][0].item<double>(), 1, 1e-6);
  EXPECT_NEAR(mixed[2][0][0][0].item<double>(), 2 * mix->lambda, 1e-6);
}

TEST(MixTest, PartnersAreTheNextRowsWithATargetInACircle) {
  spec::Training training;
  training.mixup = 1;
  const auto partner_of = [&](const std::vector<int64_t>& of) {
    const at::Tensor partner = draw_mix(training, {0, 0}, targets(of), 8)->partner;
    return std::vector<int64_t>(partner.const_data_ptr<int64_t>(), partner.const_data_ptr<int64_t>() + partner.numel());
  };
  EXPECT_EQ(partner_of({4, -1, 2, 7, -1, 1}), (std::vector<int64_t>{2, 1, 3, 5, 4, 0}));
  EXPECT_EQ(partner_of({-1, -1}), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(partner_of({5}), (std::vector<int64_t>{0}));
}

TEST(MixTest, CutmixPastesABoxAndWeighsByItsArea) {
  spec::Training training;
  training.cutmix = 1;
  const at::Tensor images = at::arange(2, at::kFloat).view({2, 1, 1, 1}).expand({2, 3, 16, 16}).contiguous();
  for (int step = 0; step < 20; ++step) {
    const auto mix = draw_mix(training, {0, step}, targets({0, 1}), 16);
    EXPECT_NEAR(mix_images(images, *mix)[0].mean().item<double>(), 1 - mix->lambda, 1e-5);
  }
}

TEST(MixTest, MixesTheLossAsItMixesTheImages) {
  Mix mix;
  mix.lambda = 0.3;
  mix.partner = targets({1, 0});
  const at::Tensor two = logits().narrow(0, 0, 2);
  const auto sum = [&](const std::vector<int64_t>& wanted) {
    return cross_entropy_sum(two, {}, targets(wanted), {}, {}).item<double>();
  };
  EXPECT_NEAR(cross_entropy_sum(two, {}, targets({2, 0}), mix, {}).item<double>(),
              0.3 * sum({2, 0}) + 0.7 * sum({0, 2}), 1e-5);
}

TEST(ClassifyTest, AClassWeighsAsMuchAsItsWeightSays) {
  const at::Tensor wanted = targets({2, 0, 1, 1});
  spec::Training training;
  training.class_weights = {{"b", 3}};
  const auto loss_of = [&](const Classify& objective) {
    return objective.loss({{"output", logits()}}, {{"label", wanted}}, {}).item<double>();
  };
  const auto weights = label_weights(training, {"a", "b", "c"});
  EXPECT_EQ(weights, (std::vector<double>{1, 3, 1}));
  const auto row = [&](int64_t i, int64_t target) {
    return cross_entropy_sum(logits().narrow(0, i, 1), {}, targets({target}), {}, {}).item<double>();
  };
  EXPECT_NEAR(loss_of(Classify(training, weights)), row(0, 2) + row(1, 0) + 3 * row(2, 1) + 3 * row(3, 1), 1e-5);
  EXPECT_THROW(label_weights(training, {"a", "c"}), base::Error);
}

TEST(ClassifyTest, ViewsAreAveragedAsProbabilities) {
  const Classify objective{spec::Training()};
  const at::Tensor one = at::tensor({0.0F, 0.0F}).reshape({1, 2}), other = at::tensor({0.0F, 100.0F}).reshape({1, 2});
  const auto mean = objective.average({{{"output", one}}, {{"output", other}}});
  const at::Tensor shares = objective.predicted(mean).at(0).tensor;
  EXPECT_NEAR(shares[0][1].item<double>(), 0.75, 1e-6);
}

TEST(ClassifyTest, KnowsTheLossOfANetworkThatKnowsNothing) {
  EXPECT_FALSE(Classify(spec::Training()).uninformed_loss());
  EXPECT_NEAR(*Classify(spec::Training(), {}, 37).uninformed_loss(), 3.6109, 1e-4);
  spec::Training focal;
  focal.focal_gamma = 2;
  const at::Tensor alike = at::zeros({1, 37});
  EXPECT_NEAR(*Classify(focal, {}, 37).uninformed_loss(),
              Classify(focal).loss({{"output", alike}}, {{"label", targets({4})}}, {}).item<double>(), 1e-5);
}

}  // namespace
}  // namespace lockstep::objective
