// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/lstm_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

constexpr int64_t kSteps = 3, kRows = 2, kIn = 2, kChannels = 4;

struct Tensors {
  at::Tensor input, hidden, cells, input_weight, state_weight, bias, peepholes;

  std::vector<at::Tensor*> all() { return {&input, &hidden, &cells, &input_weight, &state_weight, &bias, &peepholes}; }
};

Tensors drawn() {
  const auto maps = [](int64_t rows, int64_t channels) { return at::randn({rows, channels, 5, 6}); };
  return {maps(kSteps * kRows, kIn),
          maps(kRows, kChannels),
          maps(kRows, kChannels),
          at::randn({4 * kChannels, kIn, 3, 3}) * 0.2,
          at::randn({4 * kChannels, kChannels, 5, 5}) * 0.2,
          at::randn({4 * kChannels}),
          at::randn({3, kChannels})};
}

// As the paper writes it, step by step, differentiated by autograd.
LstmStates plain_layer(const Tensors& t) {
  at::Tensor h = t.hidden, c = t.cells;
  std::vector<at::Tensor> all;
  for (int64_t step = 0; step < kSteps; ++step) {
    at::Tensor z = at::conv2d(h, t.state_weight, {}, 1, 2) + t.bias.view({1, -1, 1, 1});
    if (t.input.defined()) z = z + at::conv2d(t.input.narrow(0, step * kRows, kRows), t.input_weight, {}, 1, 1);
    const auto part = [&](int64_t i) { return z.narrow(1, i * kChannels, kChannels); };
    const auto hole = [&](int64_t i) { return t.peepholes.select(0, i).view({1, kChannels, 1, 1}); };
    const at::Tensor i = at::sigmoid(part(0) + hole(0) * c), f = at::sigmoid(part(1) + hole(1) * c);
    c = f * c + i * at::tanh(part(2));
    h = at::sigmoid(part(3) + hole(2) * c) * at::tanh(c);
    all.push_back(h);
  }
  return {at::cat(all), c};
}

void expect_same(Tensors drawn_tensors, bool recompute) {
  Tensors ours, plain;
  for (size_t i = 0; i < drawn_tensors.all().size(); ++i) {
    if (!drawn_tensors.all()[i]->defined()) continue;
    *ours.all()[i] = drawn_tensors.all()[i]->clone().requires_grad_(true);
    *plain.all()[i] = drawn_tensors.all()[i]->clone().requires_grad_(true);
  }
  const LstmStates got = run_lstm_layer({ours.input, ours.hidden, ours.cells, ours.input_weight, ours.state_weight,
                                         ours.bias, ours.peepholes, kSteps, recompute, false});
  Tensors start = plain;
  if (!start.hidden.defined()) {
    start.hidden = at::randn({kRows, kChannels, 5, 6}).zero_();
    start.cells = at::zeros_like(start.hidden);
  }
  const LstmStates wanted = plain_layer(start);
  ASSERT_TRUE(got.hidden.allclose(wanted.hidden, 1e-4, 1e-5));
  ASSERT_TRUE(got.cells.allclose(wanted.cells, 1e-4, 1e-5));
  const at::Tensor push = at::randn(got.hidden.sizes()), push_cells = at::randn(got.cells.sizes());
  ((got.hidden * push).sum() + (got.cells * push_cells).sum()).backward();
  ((wanted.hidden * push).sum() + (wanted.cells * push_cells).sum()).backward();
  for (size_t i = 0; i < ours.all().size(); ++i) {
    if (!ours.all()[i]->defined()) continue;
    EXPECT_TRUE(ours.all()[i]->grad().allclose(plain.all()[i]->grad(), 1e-3, 1e-4)) << i << " recompute " << recompute;
  }
}

TEST(LstmLayerTest, IsThePapersForwardsAndBackwards) {
  for (const bool recompute : {false, true}) expect_same(drawn(), recompute);
}

TEST(LstmLayerTest, NeedsNoInputOrNoFirstStates) {
  for (const bool recompute : {false, true}) {
    Tensors without_input = drawn(), without_states = drawn();
    without_input.input = without_input.input_weight = at::Tensor();
    without_states.hidden = without_states.cells = at::Tensor();
    expect_same(without_input, recompute);
    expect_same(without_states, recompute);
  }
}

TEST(LstmLayerTest, GivesTheSameBitsWithoutABackward) {
  for (const bool recompute : {false, true}) {
    for (const int left_out : {0, 1, 2}) {  // nothing, the input, the first states
      Tensors t = drawn();
      if (left_out == 1) t.input = t.input_weight = at::Tensor();
      if (left_out == 2) t.hidden = t.cells = at::Tensor();
      const LstmLayer layer{t.input, t.hidden,    t.cells, t.input_weight, t.state_weight,
                            t.bias,  t.peepholes, kSteps,  recompute,      false};
      const LstmStates trained = run_lstm_layer(layer);
      const c10::AutoGradMode no_gradients(false);
      const LstmStates shown = run_lstm_layer(layer);
      EXPECT_TRUE(shown.hidden.equal(trained.hidden)) << left_out << " recompute " << recompute;
      EXPECT_TRUE(shown.cells.equal(trained.cells)) << left_out << " recompute " << recompute;
    }
  }
}

// With amp the weights may have lasting copies in 16 bit, while maps and bias stay fp32; in backward nobody casts.
TEST(LstmLayerTest, TakesWeightsOf16BitBesideMapsOfFp32) {
  for (const bool recompute : {false, true}) {
    Tensors t = drawn();
    for (at::Tensor* weight : {&t.input_weight, &t.state_weight}) {
      *weight = weight->to(at::kBFloat16).requires_grad_(true);
    }
    const LstmStates got = run_lstm_layer(
        {t.input, t.hidden, t.cells, t.input_weight, t.state_weight, t.bias, t.peepholes, kSteps, recompute, false});
    Tensors wide = t;
    for (at::Tensor* weight : {&wide.input_weight, &wide.state_weight}) {
      *weight = weight->detach().to(at::kFloat).requires_grad_(true);
    }
    const LstmStates wanted = plain_layer(wide);
    EXPECT_EQ(got.hidden.scalar_type(), at::kFloat);
    EXPECT_TRUE(got.hidden.allclose(wanted.hidden, 0.05, 0.05));
    got.hidden.sum().backward();
    wanted.hidden.sum().backward();
    const at::Tensor off = t.state_weight.grad().to(at::kFloat) - wide.state_weight.grad();
    EXPECT_LT(off.norm().item<double>(), 0.05 * wide.state_weight.grad().norm().item<double>());
  }
}

}  // namespace
}  // namespace lockstep::model
