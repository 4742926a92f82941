// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/optimizer.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

std::vector<model::Named> two_parameters() {
  return {{"fc.weight", at::full({2, 2}, 1.0).requires_grad_(true)},
          {"fc.bias", at::full({2}, 1.0).requires_grad_(true)}};
}

void give_gradients(const std::vector<model::Named>& parameters, double value) {
  for (auto parameter : parameters) parameter.tensor.mutable_grad() = at::full(parameter.tensor.sizes(), value);
}

double first(const at::Tensor& tensor) {
  return tensor.detach().flatten()[0].item<double>();
}

TEST(OptimizerTest, SgdFollowsItsFormula) {
  spec::Optimizer options;
  options.momentum = 0.9;
  options.weight_decay = 0.1;
  Optimizer optimizer(options, two_parameters());
  give_gradients(optimizer.parameters(), 2);
  optimizer.step(0.5);
  const double after_one = 1 - 0.5 * (2 + 0.1);
  EXPECT_NEAR(first(optimizer.parameters()[0].tensor), after_one, 1e-6);
  give_gradients(optimizer.parameters(), 2);
  optimizer.step(0.5);
  const double momentum = 0.9 * 2.1 + (2 + 0.1 * after_one);
  EXPECT_NEAR(first(optimizer.parameters()[0].tensor), after_one - 0.5 * momentum, 1e-6);
}

TEST(OptimizerTest, AParameterMayHaveAShareOfTheRate) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::adamw, spec::OptimizerName::lamb}) {
    spec::Optimizer options;
    options.name = name;
    options.weight_decay = 0;
    Optimizer plain(options, two_parameters());
    Optimizer scaled(options, two_parameters(), {}, {{"fc.weight", 0.25}});
    for (Optimizer* optimizer : {&plain, &scaled}) {
      give_gradients(optimizer->parameters(), 2);
      optimizer->step(0.1);
    }
    const auto moved = [](const Optimizer& optimizer, size_t i) { return 1 - first(optimizer.parameters()[i].tensor); };
    EXPECT_NEAR(moved(scaled, 0), 0.25 * moved(plain, 0), 1e-6) << name_of(name);
    EXPECT_NEAR(moved(scaled, 1), moved(plain, 1), 1e-6) << name_of(name);
  }
}

TEST(OptimizerTest, LayerDecayMakesTheRateOfABlockAShareOfTheNextOnes) {
  const auto network = tiny::network();
  spec::Optimizer options;
  EXPECT_TRUE(layer_rates(options, network).empty());
  options.layer_decay = 0.5;
  const Rates rates = layer_rates(options, network);
  double expected = 1;
  for (auto block = network.blocks().rbegin(); block != network.blocks().rend(); ++block) {
    for (const auto& parameter : (*block)->parameters) EXPECT_DOUBLE_EQ(rates.at(parameter.name), expected);
    expected *= 0.5;
  }
}

TEST(OptimizerTest, BiasesAreNotDecayedUnlessAskedFor) {
  for (const bool decay : {false, true}) {
    spec::Optimizer options;
    options.weight_decay = 0.5;
    options.decay_norm_and_bias = decay;
    Optimizer optimizer(options, two_parameters());
    give_gradients(optimizer.parameters(), 0);
    optimizer.step(1);
    EXPECT_NEAR(first(optimizer.parameters()[0].tensor), 0.5, 1e-6);
    EXPECT_NEAR(first(optimizer.parameters()[1].tensor), decay ? 0.5 : 1, 1e-6);
  }
}

TEST(OptimizerTest, AdamwsFirstStepIsTheRateTimesTheSign) {
  spec::Optimizer options;
  options.name = spec::OptimizerName::adamw;
  options.weight_decay = 0;
  Optimizer optimizer(options, two_parameters());
  give_gradients(optimizer.parameters(), 3);
  optimizer.step(0.01);
  EXPECT_NEAR(first(optimizer.parameters()[0].tensor), 0.99, 1e-6);
}

TEST(OptimizerTest, AResumedOptimizerGoesOnBitForBit) {
  for (const auto name :
       {spec::OptimizerName::sgd, spec::OptimizerName::adamw, spec::OptimizerName::lars, spec::OptimizerName::lamb}) {
    spec::Optimizer options;
    options.name = name;
    Optimizer straight(options, two_parameters());
    for (int i = 0; i < 3; ++i) {
      give_gradients(straight.parameters(), 1 + i);
      straight.step(0.1);
    }
    auto copies = two_parameters();
    for (size_t k = 0; k < copies.size(); ++k) copies[k].tensor.detach().copy_(straight.parameters()[k].tensor);
    Optimizer resumed(options, copies);
    resumed.load_state(straight.state());
    for (auto* one : {&straight, &resumed}) {
      give_gradients(one->parameters(), 0.25);
      one->step(0.1);
    }
    for (size_t k = 0; k < copies.size(); ++k) {
      EXPECT_TRUE(at::equal(straight.parameters()[k].tensor, resumed.parameters()[k].tensor));
    }
  }
}

TEST(OptimizerTest, RefusesTheStateOfAnotherShapeByName) {
  Optimizer optimizer({}, two_parameters());
  auto state = optimizer.state();
  state[1].tensor = at::zeros({3});
  try {
    optimizer.load_state(state);
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_NE(error.message().find("momentum.fc.weight"), std::string::npos);
  }
}

// Goyal et al. (2017), remark 2: with v = m v + lr g; w -= v, a new rate needs v corrected by new / old. With our form
// it needs nothing, and gives the same weights.
TEST(OptimizerTest, AChangeOfRateNeedsNoMomentumCorrection) {
  for (const auto name : {spec::OptimizerName::sgd, spec::OptimizerName::lars}) {
    spec::Optimizer options;
    options.name = name;
    options.momentum = 0.9;
    options.weight_decay = 0;
    Optimizer optimizer(options, {{"fc.bias", at::full({1}, 1.0).requires_grad_(true)}});  // no ratio: plain momentum
    double corrected = 1, corrected_velocity = 0, uncorrected = 1, uncorrected_velocity = 0, rate_before = 0.1;
    for (const double rate : {0.1, 0.1, 0.8, 0.8, 0.05, 0.4}) {
      const double gradient = 0.5 + rate;
      give_gradients(optimizer.parameters(), gradient);
      optimizer.step(rate);
      corrected_velocity = 0.9 * (rate / rate_before) * corrected_velocity + rate * gradient;
      corrected -= corrected_velocity;
      uncorrected_velocity = 0.9 * uncorrected_velocity + rate * gradient;
      uncorrected -= uncorrected_velocity;
      rate_before = rate;
    }
    EXPECT_NEAR(first(optimizer.parameters()[0].tensor), corrected, 1e-6);
    EXPECT_GT(std::abs(uncorrected - corrected), 0.1);  // the correction matters
  }
}

// Goyal et al., remark 1: a loss twice as large is not a rate twice as large, because decay does not scale with it.
TEST(OptimizerTest, DecayDoesNotScaleWithTheLoss) {
  const auto end = [](double gradient, double rate) {
    spec::Optimizer options;
    options.momentum = 0;
    options.weight_decay = 0.5;
    Optimizer optimizer(options, two_parameters());
    give_gradients(optimizer.parameters(), gradient);
    optimizer.step(rate);
    return first(optimizer.parameters()[0].tensor);
  };
  EXPECT_NEAR(end(2, 0.1), 1 - 0.1 * (2 + 0.5), 1e-6);
  EXPECT_NEAR(end(1, 0.2), 1 - 0.2 * (1 + 0.5), 1e-6);
  EXPECT_NE(end(2, 0.1), end(1, 0.2));
}

TEST(ClipTest, BringsTheGlobalNormToTheLimitAndLeavesSmallOnesAlone) {
  std::vector<at::Tensor> gradients{at::full({4}, 3.0), at::full({1}, 8.0)};  // norm 10
  EXPECT_NEAR(global_norm(gradients), 10, 1e-5);
  clip_gradients(gradients, 10, 20);
  EXPECT_NEAR(global_norm(gradients), 10, 1e-5);
  clip_gradients(gradients, 10, 1);
  EXPECT_NEAR(global_norm(gradients), 1, 1e-5);
}

TEST(ClipTest, BringsEachElementIntoTheLimits) {
  std::vector<at::Tensor> gradients{at::tensor({-3.0F, -0.5F, 0.25F}), at::tensor({8.0F}), at::empty({0})};
  clip_values(gradients, 0.5);
  EXPECT_TRUE(at::equal(gradients[0], at::tensor({-0.5F, -0.5F, 0.25F})));
  EXPECT_TRUE(at::equal(gradients[1], at::tensor({0.5F})));
}

}  // namespace
}  // namespace lockstep::step
