// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/update.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::kernel {
namespace {

constexpr double kRate = 0.05;

// As the host writes them before step number `step` (1, 2, ...) and judge_step a step that is taken.
at::Tensor numbers_of(int64_t step, double factor = 1) {
  at::Tensor numbers = at::zeros({kStepNumbers});
  auto* values = numbers.mutable_data_ptr<float>();
  values[kLearningRate] = static_cast<float>(kRate);
  values[kRowsFactor] = 1;
  values[kFirstCorrection] = static_cast<float>(1 - std::pow(0.9, step));
  values[kSecondCorrection] = static_cast<float>(std::sqrt(1 - std::pow(0.999, step)));
  values[kAverageShare] = 0.25F;
  values[kGradientFactor] = static_cast<float>(factor);
  values[kTaken] = values[kAveraged] = 1;
  return numbers;
}

Tensors some() {
  return {at::randn({5, 3}), at::randn({7})};
}

Tensors cloned(const Tensors& from) {
  Tensors all;
  for (const at::Tensor& tensor : from) all.push_back(tensor.clone());
  return all;
}

Tensors zeros_of(const Tensors& from) {
  Tensors all;
  for (const at::Tensor& tensor : from) all.push_back(at::zeros_like(tensor));
  return all;
}

void expect_close(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-6)) << i;
}

TEST(UpdateTest, SgdIsLibtorchs) {
  for (const bool nesterov : {false, true}) {
    const Tensors start = some();
    Tensors wanted = cloned(start), momenta = zeros_of(start);
    UpdatedLayers layers{.weights = cloned(start),
                         .gradients = {},
                         .first = zeros_of(start),
                         .second = {},
                         .copies = {at::empty({5, 3}, at::kBFloat16), at::empty({0})},
                         .weight_decay = 0.1};
    for (int64_t step = 1; step <= 3; ++step) {
      layers.gradients = some();
      Tensors gradients = cloned(layers.gradients);
      at::_fused_sgd_(wanted, gradients, momenta, 0.1, 0.9, kRate, 0, nesterov, false, step == 1);
      sgd_step(layers, numbers_of(step), {.momentum = 0.9, .nesterov = nesterov});
    }
    expect_close(layers.weights, wanted);
    expect_close(layers.first, momenta);
    EXPECT_TRUE(layers.copies[0].equal(layers.weights[0].to(at::kBFloat16)));
  }
}

TEST(UpdateTest, AdamwIsLibtorchs) {
  const Tensors start = some();
  Tensors wanted = cloned(start), first = zeros_of(start), second = zeros_of(start), steps;
  for (size_t i = 0; i < start.size(); ++i) steps.push_back(at::zeros({}));
  UpdatedLayers layers{.weights = cloned(start),
                       .gradients = {},
                       .first = zeros_of(start),
                       .second = zeros_of(start),
                       .copies = {at::empty({0}), at::empty({7}, at::kHalf)},
                       .rate = 0.5,
                       .weight_decay = 0.1};
  for (int64_t step = 1; step <= 3; ++step) {
    layers.gradients = some();
    Tensors gradients = cloned(layers.gradients);
    for (auto& count : steps) count.add_(1);
    at::_fused_adamw_(wanted, gradients, first, second, {}, steps, 0.5 * kRate, 0.9, 0.999, 0.1, 1e-8, false, false);
    adamw_step(layers, numbers_of(step), {});
  }
  expect_close(layers.weights, wanted);
  expect_close(layers.second, second);
  EXPECT_TRUE(layers.copies[1].equal(layers.weights[1].to(at::kHalf)));
}

TEST(UpdateTest, GradientsAreScaledThenCut) {
  const at::Tensor gradient = at::tensor({4.0F, -40.0F, 1.0F});
  const UpdatedLayers layers{.weights = {at::zeros({3})},
                             .gradients = {gradient},
                             .first = {},
                             .second = {},
                             .copies = {at::empty({0})},
                             .clip_value = 1};
  sgd_step(layers, numbers_of(1, 0.25), {});
  EXPECT_TRUE(at::allclose(layers.weights[0], at::tensor({-1.0F, 1.0F, -0.25F}) * kRate));
}

TEST(UpdateTest, AStepThatIsNotTakenChangesNothing) {
  at::Tensor numbers = numbers_of(1);
  numbers.zero_();
  const Tensors start = some();
  const UpdatedLayers layers{.weights = cloned(start),
                             .gradients = some(),
                             .first = zeros_of(start),
                             .second = zeros_of(start),
                             .copies = {at::empty({0}), at::empty({0})}};
  sgd_step(layers, numbers, {.momentum = 0.9});
  adamw_step(layers, numbers, {});
  const Tensors averages = cloned(start);
  follow_average(averages, some(), numbers);
  expect_close(layers.weights, start);
  expect_close(averages, start);
}

TEST(UpdateTest, TheNormIsOverAllGradients) {
  const Tensors gradients{at::tensor({3.0F}), at::tensor({4.0F, 0.0F}).to(at::kBFloat16)};
  EXPECT_FLOAT_EQ(gradient_norm(gradients).item<float>(), 5);
}

Judged judged(double loss, double norm) {
  return {.totals = at::tensor({loss, 2.0}, at::kDouble),
          .norm = at::tensor(static_cast<float>(norm)),
          .finite = at::scalar_tensor(true, at::kBool),
          .scale = {}};
}

TEST(UpdateTest, TheStepIsJudgedByLossAndNorm) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  at::Tensor numbers = numbers_of(1);
  Judged one = judged(1.5, 8);
  one.scale = at::tensor(2.0F);
  one.clip_norm = 1;
  const at::Tensor report = judge_step(one, numbers);
  EXPECT_TRUE(at::allclose(report, at::tensor({1.5, 2.0, 8.0, 0.0}, at::kDouble)));
  EXPECT_FLOAT_EQ(numbers[kTaken].item<float>(), 1);
  EXPECT_NEAR(numbers[kGradientFactor].item<float>(), 0.5 * 0.25, 1e-6);  // half for the scale, then 4 becomes 1
  judge_step(judged(kNone, 8), numbers);
  EXPECT_FLOAT_EQ(numbers[kTaken].item<float>(), 0);
  judge_step(judged(1, kNone), numbers);
  EXPECT_FLOAT_EQ(numbers[kTaken].item<float>(), 0);
}

TEST(UpdateTest, StatisticsThatAreNotFiniteHoldTheAverageBackAlone) {
  at::Tensor numbers = numbers_of(1);
  Judged one = judged(1, 1);
  one.finite = at::scalar_tensor(false, at::kBool);
  EXPECT_EQ(judge_step(one, numbers)[3].item<double>(), 1);
  EXPECT_FLOAT_EQ(numbers[kTaken].item<float>(), 1);
  EXPECT_FLOAT_EQ(numbers[kAveraged].item<float>(), 0);
}

TEST(UpdateTest, NoReadableRowIsNoStep) {
  at::Tensor numbers = numbers_of(1);
  numbers[kRowsFactor] = 0;
  judge_step(judged(0, 0), numbers);
  EXPECT_FLOAT_EQ(numbers[kTaken].item<float>(), 0);
}

TEST(UpdateTest, AnAverageFollowsByItsShare) {
  const Tensors averages{at::zeros({3})};
  follow_average(averages, {at::tensor({4.0F, 8.0F, 0.0F})}, numbers_of(1));
  EXPECT_TRUE(at::allclose(averages[0], at::tensor({1.0F, 2.0F, 0.0F})));
}

}  // namespace
}  // namespace lockstep::kernel
