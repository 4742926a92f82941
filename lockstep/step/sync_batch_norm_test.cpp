// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::step {
namespace {

constexpr int64_t kChannels = 3;

at::Tensor swell(at::IntArrayRef shape, double phase, at::ScalarType type) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return (at::arange(count, at::kDouble) * 0.71 + phase).sin().view(shape).to(type);
}

// A batch norm over `rows` images, with what its gradient is asked along, and all that comes out.
struct Norm {
  at::Tensor input, direction, weight, bias, mean, variance;
  at::Tensor output = {};

  Norm(int64_t rows, at::ScalarType type, double offset = 0, at::MemoryFormat format = at::MemoryFormat::ChannelsLast)
      : input((swell({rows, kChannels, 2, 5}, 0.2, type) + offset).contiguous(format)),
        direction(swell({rows, kChannels, 2, 5}, 1.1, type)),
        weight(swell({kChannels}, 0.5, type) + 1.5),
        bias(swell({kChannels}, 0.7, type)),
        mean(at::zeros({kChannels}, at::TensorOptions(type))),
        variance(at::ones({kChannels}, at::TensorOptions(type))) {}

  Norm part(int64_t start, int64_t rows) const {
    Norm some = *this;
    some.input = input.narrow(0, start, rows).clone();
    some.direction = direction.narrow(0, start, rows).clone();
    for (auto* tensor : {&some.weight, &some.bias, &some.mean, &some.variance}) *tensor = tensor->clone();
    return some;
  }
  model::BatchNormCall call() {
    for (auto* tensor : {&input, &weight, &bias}) tensor->requires_grad_(true);
    return {input, weight, bias, mean, variance, 0.1, 1e-5};
  }
  void finish(const at::Tensor& result) {
    output = result.detach();
    (result * direction).sum().backward();
  }
};

// Every rank's rows, in the order of the ranks.
std::vector<Norm> on_ranks(const Norm& whole, const std::vector<int64_t>& rows) {
  std::vector<Norm> parts;
  int64_t start = 0;
  for (const int64_t count : rows) {
    parts.push_back(whole.part(start, count));
    start += count;
  }
  comm::run_thread_ranks(static_cast<int64_t>(rows.size()), [&](comm::Group& group) {
    Norm& mine = parts[static_cast<size_t>(group.rank())];
    mine.finish(sync_batch_norm(mine.call(), group));
  });
  return parts;
}

at::Tensor joined(const std::vector<Norm>& parts, at::Tensor (*of)(const Norm&)) {
  std::vector<at::Tensor> all;
  for (const Norm& part : parts) all.push_back(of(part));
  return at::cat(all);
}

at::Tensor added(const std::vector<Norm>& parts, at::Tensor (*of)(const Norm&)) {
  at::Tensor sum = of(parts[0]).clone();
  for (size_t i = 1; i < parts.size(); ++i) sum.add_(of(parts[i]));
  return sum;
}

double worst(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void expect_the_whole_batch(const std::vector<int64_t>& rows, at::ScalarType type, double tolerance) {
  int64_t count = 0;
  for (const int64_t some : rows) count += some;
  Norm whole(count, type);
  const auto parts = on_ranks(whole, rows);
  whole = whole.part(0, count);
  whole.finish(model::plain_batch_norm(whole.call(), /*training=*/true));
  EXPECT_LE(worst(joined(parts, [](const Norm& n) { return n.output; }), whole.output), tolerance);
  EXPECT_LE(worst(joined(parts, [](const Norm& n) { return n.input.grad(); }), whole.input.grad()), tolerance);
  EXPECT_LE(worst(added(parts, [](const Norm& n) { return n.weight.grad(); }), whole.weight.grad()), 20 * tolerance);
  EXPECT_LE(worst(added(parts, [](const Norm& n) { return n.bias.grad(); }), whole.bias.grad()), 20 * tolerance);
  for (const Norm& part : parts) {
    EXPECT_LE(worst(part.mean, whole.mean), tolerance);
    EXPECT_LE(worst(part.variance, whole.variance), tolerance);
    EXPECT_TRUE(at::equal(part.mean, parts[0].mean) && at::equal(part.variance, parts[0].variance));
  }
}

TEST(SyncBatchNormTest, IsTheBatchNormOfTheWholeBatchOnAnyNumberOfRanks) {
  for (const auto& rows : std::vector<std::vector<int64_t>>{{6, 6}, {4, 4, 4}, {3, 3, 3, 3}}) {
    expect_the_whole_batch(rows, at::kDouble, 1e-12);
    expect_the_whole_batch(rows, at::kFloat, 1e-5);
  }
}

TEST(SyncBatchNormTest, RanksMayHaveDifferentCountsOfRowsAndNone) {
  for (const auto& rows : std::vector<std::vector<int64_t>>{{7, 6}, {1, 4, 2}, {0, 5}, {3, 0, 0, 2}, {1, 0}}) {
    expect_the_whole_batch(rows, at::kDouble, 1e-12);
    expect_the_whole_batch(rows, at::kFloat, 1e-5);
  }
}

TEST(SyncBatchNormTest, AgreesWithDifferencesOfTheLoss) {
  const Norm whole(5, at::kDouble);
  const std::vector<int64_t> rows{2, 3};
  const at::Tensor gradient = joined(on_ranks(whole, rows), [](const Norm& n) { return n.input.grad(); }).flatten();
  const auto loss_at = [&](int64_t element, double step) {
    Norm moved = whole.part(0, 5);
    moved.input = moved.input.contiguous();
    moved.input.flatten()[element].add_(step);
    double loss = 0;
    for (const Norm& part : on_ranks(moved, rows)) loss += (part.output * part.direction).sum().item<double>();
    return loss;
  };
  for (int64_t element = 0; element < gradient.numel(); element += 13) {
    const double slope = (loss_at(element, 1e-5) - loss_at(element, -1e-5)) / 2e-5;
    EXPECT_NEAR(gradient[element].item<double>(), slope, 1e-8) << element;
  }
}

// E[x^2] - E[x]^2 in float would lose the variance 0.5 beside a mean of 1000: its square has steps of 0.06.
TEST(SyncBatchNormTest, KeepsTheVarianceFarFromZero) {
  const auto exact = on_ranks(Norm(12, at::kDouble, 1000), {5, 7});
  const auto ours = on_ranks(Norm(12, at::kFloat, 1000), {5, 7});
  const at::Tensor variance = (exact[0].variance - 0.9) / 0.1;  // of the batch
  EXPECT_LE(worst((ours[0].variance.to(at::kDouble) - 0.9) / 0.1, variance), 1e-4);
  EXPECT_NEAR(variance[0].item<double>(), 0.5, 0.1);
}

TEST(SyncBatchNormTest, SixteenBitImagesKeepExactStatistics) {
  const Norm whole(8, at::kFloat);
  std::vector<Norm> parts{whole.part(0, 5), whole.part(5, 3)};
  Norm alone = whole.part(0, 8);
  alone.input = alone.input.to(at::kBFloat16);
  const at::Tensor expected = model::plain_batch_norm(alone.call(), /*training=*/true);
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    Norm& mine = parts[static_cast<size_t>(group.rank())];
    mine.input = mine.input.to(at::kBFloat16);
    mine.finish(sync_batch_norm(mine.call(), group));
    EXPECT_EQ(mine.output.scalar_type(), at::kBFloat16);
    EXPECT_EQ(mine.input.grad().scalar_type(), at::kBFloat16);
  });
  EXPECT_LE(worst(joined(parts, [](const Norm& n) { return n.output.to(at::kFloat); }), expected.to(at::kFloat)), 0.02);
  EXPECT_LE(worst(parts[0].variance, alone.variance), 1e-5);
}

}  // namespace
}  // namespace lockstep::step
