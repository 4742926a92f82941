// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/tokens.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

at::Tensor leaf(const at::Tensor& value) {
  return value.clone().requires_grad_(true);
}

TEST(TokensTest, TheGradientsOfSumAndNormMeet) {
  for (const bool with_branch : {false, true}) {
    const at::Tensor x = at::randn({2, 5, 16}), more = at::randn({2, 5, 16}), weight = at::randn({16});
    const at::Tensor push = at::randn({2, 5, 16}), pass = at::randn({2, 5, 16}), bias = at::randn({16});
    const at::Tensor a = leaf(x), b = leaf(more), w = leaf(weight), c = leaf(bias);
    const SumAndNorm both = add_layer_norm(a, with_branch ? b : at::Tensor(), w, c, 1e-6);
    ((both.normalized * push).sum() + (both.sum * pass).sum()).backward();
    const at::Tensor a2 = leaf(x), b2 = leaf(more), w2 = leaf(weight), c2 = leaf(bias);
    const at::Tensor sum = with_branch ? a2 + b2 : a2 + 0;
    ((at::layer_norm(sum, {16}, w2, c2, 1e-6) * push).sum() + (sum * pass).sum()).backward();
    EXPECT_TRUE(at::allclose(a.grad(), a2.grad(), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(w.grad(), w2.grad(), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(c.grad(), c2.grad(), 1e-4, 1e-5));
    if (with_branch) {
      EXPECT_TRUE(at::allclose(b.grad(), b2.grad(), 1e-4, 1e-5));
    }
  }
}

TEST(TokensTest, ASumThatNobodyNormalisesHasItsOwnGradientOnly) {
  const at::Tensor x = leaf(at::randn({2, 16})), weight = leaf(at::randn({16})), bias = leaf(at::randn({16}));
  add_layer_norm(x, {}, weight, bias, 1e-6).sum.sum().backward();
  EXPECT_TRUE(x.grad().eq(1).all().item<bool>());
  EXPECT_FALSE(weight.grad().defined());
}

TEST(TokensTest, HeadsAreViewsAndTheirGradientsAreJoined) {
  const at::Tensor x = at::randn({2, 5, 3 * 2 * 8}), one = leaf(x), other = leaf(x);
  const Heads heads = split_qkv(one, 2);
  EXPECT_EQ(heads.query.data_ptr(), one.data_ptr());
  const auto parts = other.view({2, 5, 3, 2, 8}).permute({2, 0, 3, 1, 4}).unbind(0);
  (heads.query * heads.key + heads.value * 3).pow(2).sum().backward();
  (parts[0] * parts[1] + parts[2] * 3).pow(2).sum().backward();
  EXPECT_TRUE(one.grad().equal(other.grad()));
}

TEST(TokensTest, LinearIsLibtorchs) {
  const at::Tensor x = at::randn({2, 5, 12}), weight = at::randn({8, 12}), bias = at::randn({8});
  const at::Tensor push = at::randn({2, 5, 8});
  const at::Tensor a = leaf(x), w = leaf(weight), b = leaf(bias), a2 = leaf(x), w2 = leaf(weight), b2 = leaf(bias);
  linear(a, w, b).backward(push);
  at::linear(a2, w2, b2).backward(push);
  EXPECT_TRUE(at::allclose(a.grad(), a2.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(w.grad(), w2.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(b.grad(), b2.grad(), 1e-4, 1e-5));
}

TEST(TokensTest, LinearAndGeluAreLibtorchs) {
  const at::Tensor x = at::randn({2, 5, 12}), weight = at::randn({8, 12}), bias = at::randn({8});
  const at::Tensor push = at::randn({2, 5, 8});
  const at::Tensor a = leaf(x), w = leaf(weight), b = leaf(bias), a2 = leaf(x), w2 = leaf(weight), b2 = leaf(bias);
  linear_gelu(a, w, b).backward(push);
  at::gelu(at::linear(a2, w2, b2)).backward(push);
  EXPECT_TRUE(at::allclose(a.grad(), a2.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(w.grad(), w2.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(b.grad(), b2.grad(), 1e-4, 1e-5));
}

}  // namespace
}  // namespace lockstep::kernel
