// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/lstm_gates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

constexpr int64_t kRows = 2, kChannels = 3, kHeight = 4, kWidth = 5;

at::Tensor maps(int64_t channels) {
  return at::randn({kRows, channels, kHeight, kWidth}).contiguous(at::MemoryFormat::ChannelsLast);
}

// The definition, which autograd differentiates.
TEST(LstmGatesTest, AreTheirDefinitionForwardsAndBackwards) {
  const at::Tensor in = maps(4 * kChannels), state = maps(4 * kChannels), cells = maps(kChannels),
                   holes = at::randn({3, kChannels});
  at::Tensor z = (in + state).requires_grad_(true), c = cells.clone().requires_grad_(true),
             p = holes.clone().requires_grad_(true);
  const auto part = [&](int64_t i) { return z.narrow(1, i * kChannels, kChannels); };
  const auto hole = [&](int64_t i) { return p.select(0, i).view({1, kChannels, 1, 1}); };
  const at::Tensor i = at::sigmoid(part(0) + hole(0) * c), f = at::sigmoid(part(1) + hole(1) * c),
                   g = at::tanh(part(2)), next = f * c + i * g, o = at::sigmoid(part(3) + hole(2) * next),
                   h = o * at::tanh(next);
  const at::Tensor hidden = maps(kChannels), cells_out = maps(kChannels), gates = maps(4 * kChannels);
  lstm_gates({in, state, {}, cells, holes}, {hidden, cells_out, gates}, true);
  EXPECT_TRUE(hidden.allclose(h, 1e-5, 1e-6));
  EXPECT_TRUE(cells_out.allclose(next, 1e-5, 1e-6));

  const at::Tensor of_h = maps(kChannels), of_c = maps(kChannels);
  ((h * of_h).sum() + (next * of_c).sum()).backward();
  const at::Tensor of_sums = maps(4 * kChannels), of_cells = of_c.clone(), of_holes = at::zeros({3, kChannels});
  lstm_gates_backward({of_h, gates, cells, cells_out, holes}, {of_sums, of_cells, of_holes}, true);
  EXPECT_TRUE(of_sums.allclose(z.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(of_cells.allclose(c.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(of_holes.allclose(p.grad(), 1e-4, 1e-5));
}

TEST(LstmGatesTest, WithoutAnInputTheBiasStandsForIt) {
  const at::Tensor state = maps(4 * kChannels), cells = maps(kChannels), holes = at::randn({3, kChannels}),
                   bias = at::randn({4 * kChannels});
  const at::Tensor a = maps(kChannels), b = maps(kChannels), c = maps(kChannels);
  lstm_gates({{}, state, bias, cells, holes}, {a, c, {}}, true);
  lstm_gates({bias.view({1, -1, 1, 1}).expand_as(state), state, {}, cells, holes}, {b, c, {}}, false);
  EXPECT_TRUE(a.allclose(b));
}

}  // namespace
}  // namespace lockstep::kernel
