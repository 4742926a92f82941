// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/ghost_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::step {
namespace {

model::BatchNormCall ghost_images(int64_t rows) {
  const at::Tensor input = (at::arange(rows * 2 * 3 * 3, at::kFloat) * 0.37).sin().view({rows, 2, 3, 3});
  return {input, at::ones({2}) * 1.5, at::ones({2}) * 0.25, at::zeros({2}), at::ones({2}), 0.1, 1e-5};
}

model::BatchNormCall rows_of(const model::BatchNormCall& call, int64_t start, int64_t count) {
  model::BatchNormCall part = call;
  part.input = call.input.narrow(0, start, count);
  part.running_mean = call.running_mean.clone();
  part.running_variance = call.running_variance.clone();
  return part;
}

TEST(GhostBatchNormTest, NormalisesEverySliceByItself) {
  const auto call = ghost_images(7);  // 3 + 3 + 1
  std::vector<at::Tensor> alone;
  for (const auto& [start, count] : {std::pair<int64_t, int64_t>{0, 3}, {3, 3}, {6, 1}}) {
    alone.push_back(model::plain_batch_norm(rows_of(call, start, count), /*training=*/true));
  }
  EXPECT_TRUE(at::equal(ghost_batch_norm(rows_of(call, 0, 7), 3), at::cat(alone)));
}

TEST(GhostBatchNormTest, OneSliceIsThePlainBatchNorm) {
  const auto ghost = rows_of(ghost_images(4), 0, 4);
  const auto plain = rows_of(ghost_images(4), 0, 4);
  EXPECT_TRUE(at::equal(ghost_batch_norm(ghost, 4), model::plain_batch_norm(plain, /*training=*/true)));
  EXPECT_TRUE(at::allclose(ghost.running_mean, plain.running_mean, 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(ghost.running_variance, plain.running_variance, 1e-6, 1e-7));
}

TEST(GhostBatchNormTest, RunningStatisticsTakeOneStepTowardsTheMeanOverSlices) {
  const auto whole = rows_of(ghost_images(8), 0, 8);
  ghost_batch_norm(whole, 2);
  at::Tensor mean = at::zeros({2});
  for (const int64_t start : {0, 4}) {  // two ranks with two slices each
    const auto half = rows_of(ghost_images(8), start, 4);
    ghost_batch_norm(half, 2);
    mean.add_(half.running_mean, 0.5);
  }
  EXPECT_TRUE(at::allclose(whole.running_mean, mean, 1e-6, 1e-7));
}

}  // namespace
}  // namespace lockstep::step
