// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/trust.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/step/optimizer.h"

namespace lockstep::step {
namespace {

// timm's values are compared in tests/oracles/optimizers.py; here: the formulas on numbers that a head can check.
Layers one_layer(double weight, double gradient, bool adapted = true) {
  Layers layers;
  layers.parameters = {at::full({4}, weight)};  // norm 2 |weight|
  layers.gradients = {at::full({4}, gradient)};
  layers.first = {at::full({4}, 0.0)};
  layers.second = {at::full({4}, 0.0)};
  layers.adapted = {adapted};
  return layers;
}

double first_of(const at::Tensor& tensor) {
  return tensor[0].item<double>();
}

TEST(TrustTest, LarsMakesAStepAShareOfTheWeightsNorm) {
  spec::Optimizer options;
  options.trust = 0.01;
  for (const double gradient : {1e-3, 1.0, 1e3}) {  // whatever the gradient's length
    Layers layers = one_layer(3, gradient);
    scale_by_trust(layers, options, norms_of);
    EXPECT_NEAR(first_of(layers.gradients[0]), 0.01 * 3, 1e-6);
  }
}

TEST(TrustTest, LarsCountsDecayInItsRatio) {
  spec::Optimizer options;
  options.trust = 0.01;
  Layers layers = one_layer(3, 1);
  layers.weight_decay = 0.5;
  scale_by_trust(layers, options, norms_of);
  const double ratio = 0.01 * 6 / (2 + 0.5 * 6);
  EXPECT_NEAR(first_of(layers.gradients[0]), ratio * (1 + 0.5 * 3), 1e-6);
}

TEST(TrustTest, LambMovesALayerByItsOwnLengthTimesTheRate) {
  Layers layers = one_layer(3, 0.7);
  lamb_step(layers, {}, norms_of, /*lr=*/0.1, /*step=*/1);
  EXPECT_NEAR(first_of(layers.parameters[0]), 3 - 0.1 * 3, 1e-5);
}

TEST(TrustTest, NormsAndBiasesKeepThePlainStep) {
  Layers lars = one_layer(3, 1, /*adapted=*/false);
  scale_by_trust(lars, {}, norms_of);
  EXPECT_EQ(first_of(lars.gradients[0]), 1);
  Layers lamb = one_layer(3, 1, /*adapted=*/false);
  lamb_step(lamb, {}, norms_of, 0.1, 1);
  EXPECT_NEAR(first_of(lamb.parameters[0]), 3 - 0.1, 1e-5);  // Adam's first step: the sign
}

TEST(TrustTest, AZeroLayerOrGradientHasRatioOne) {
  Layers zero_weights = one_layer(0, 1);
  scale_by_trust(zero_weights, {}, norms_of);
  EXPECT_EQ(first_of(zero_weights.gradients[0]), 1);
  Layers zero_gradient = one_layer(2, 0);
  zero_gradient.weight_decay = 0.5;
  scale_by_trust(zero_gradient, {}, norms_of);
  EXPECT_EQ(first_of(zero_gradient.gradients[0]), 1);
}

TEST(TrustTest, PartsOfALayerTakeTheRatioOfTheWhole) {
  const Norms of_two_ranks = [](const std::vector<at::Tensor>& tensors) {  // the other rank holds as much again
    auto norms = norms_of(tensors);
    for (double& norm : norms) norm *= std::sqrt(2.0);
    return norms;
  };
  spec::Optimizer options;
  Layers whole = one_layer(3, 0.7);
  Layers part = one_layer(3, 0.7);
  whole.weight_decay = part.weight_decay = 0.1;
  scale_by_trust(whole, options, norms_of);
  scale_by_trust(part, options, of_two_ranks);
  EXPECT_NEAR(first_of(whole.gradients[0]), first_of(part.gradients[0]), 1e-9);
}

}  // namespace
}  // namespace lockstep::step
