// SPDX-License-Identifier: Apache-2.0
// The rules of large batches (Goyal et al., "Accurate, large minibatch SGD", 2017), each as: one rank with the whole
// batch and k ranks with their shares end with the same weights, statistics and optimizer state. Sums over ranks round
// differently, so up to a tolerance: 1e-4 relative after four steps, where no other is given. Each test says which
// batch norm it has.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/loader/collection.h"
#include "lockstep/loader/loader.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

constexpr int64_t kPixels = 16;  // 1 x 1 at the end: the last norm has one value a sample

model::Network network_of(const std::string& name, int64_t pixels = kPixels) {
  at::set_num_threads(1);
  spec::Model model;
  model.name = name;
  model.classes = tiny::kClasses;
  model.width = 4;
  return model::make_network(model, pixels, /*seed=*/7);
}

// Rows [start, start + rows) of an endless, fixed dataset.
Samples rows_from(int64_t start, int64_t rows, int64_t global_size, int64_t step, int64_t pixels) {
  const int64_t length = 3 * pixels * pixels;
  const at::Tensor position = at::arange(rows * length, at::kDouble).add(static_cast<double>(start * length));
  const at::Tensor targets = at::arange(start, start + rows, at::kLong).remainder(tiny::kClasses);
  const at::Tensor images = (position * 0.37).sin().to(at::kFloat).view({rows, 3, pixels, pixels});
  return {step, 0, global_size, {{"image", images}, {"label", targets}}};
}

struct LargeBatch {
  std::string network = "smallcnn";
  spec::Training training = {};
  int64_t batch = 24;
  double lr = 0.1;
  int64_t steps = 4;
  double tolerance = 1e-4;
  int64_t pixels = kPixels;
  int64_t nudged = -1;  // the stem's weight that begins one unit in its last place higher; -1: none
};

at::Tensor everything(const model::Network& network, const Step& step) {
  std::vector<at::Tensor> all;
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().flatten().to(at::kDouble));
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.flatten().to(at::kDouble));
  for (const auto& entry : step.state()) all.push_back(entry.tensor.flatten().to(at::kDouble));
  return at::cat(all);
}

// The end on `ranks` ranks, as rank 0 has it; all must have the same bits.
at::Tensor end_on(int64_t ranks, const LargeBatch& large) {
  at::Tensor end;
  comm::run_thread_ranks(ranks, [&](comm::Group& group) {
    auto network = network_of(large.network, large.pixels);
    if (large.nudged >= 0) {
      float& weight = network.parameters()[0].tensor.detach().mutable_data_ptr<float>()[large.nudged];
      weight = std::nextafter(weight, 1e9F);
    }
    StepOptions options;
    options.training = large.training;
    Step step(network, group, options);
    const int64_t begin = group.rank() * large.batch / ranks;
    const int64_t rows = (group.rank() + 1) * large.batch / ranks - begin;
    for (int64_t i = 0; i < large.steps; ++i) {
      const auto result = step.run(rows_from(i * large.batch + begin, rows, large.batch, i, large.pixels), large.lr);
      EXPECT_TRUE(result.finite);
      EXPECT_EQ(result.samples, large.batch);
    }
    const at::Tensor mine = everything(network, step);
    const auto all = group.all_gather(mine);
    EXPECT_TRUE(at::equal(all[0], mine)) << "rank " << group.rank();
    if (group.rank() == 0) end = mine;
  });
  return end;
}

void expect_the_end_of_one_rank(const LargeBatch& large, std::initializer_list<int64_t> ranks) {
  const at::Tensor one = end_on(1, large);
  for (const int64_t many : ranks) {
    const at::Tensor end = end_on(many, large);
    EXPECT_TRUE(at::allclose(end, one, large.tolerance, large.tolerance / 10))
        << many << " ranks: " << (end - one).abs().max().item<double>();
  }
}

spec::Training with(spec::BatchNorm norm, int64_t ghost_batch = 0) {
  spec::Training training;
  training.batch_norm = norm;
  training.ghost_batch = ghost_batch;
  return training;
}

TEST(LargeBatchTest, TheGradientIsTheMeanOverTheTotalBatchHoweverItIsCut) {  // no batch norm
  for (const int64_t batch : {24, 13, 3}) {                                  // even, uneven, a rank without rows
    expect_the_end_of_one_rank({.network = "mlp", .batch = batch}, {2, 3, 4});
  }
}

TEST(LargeBatchTest, SyncBatchNormSeesTheWholeBatch) {  // sync
  for (const int64_t batch : {24, 13}) {
    expect_the_end_of_one_rank({.training = with(spec::BatchNorm::sync), .batch = batch}, {2, 3, 4});
  }
  // A norm of three samples divides by small deviations: rounding grows with each step.
  expect_the_end_of_one_rank({.training = with(spec::BatchNorm::sync), .batch = 3, .steps = 1, .tolerance = 1e-3},
                             {2, 3, 4});
}

TEST(LargeBatchTest,
     GhostBatchNormKeepsTheBatchOfANormConstant) {  // ghost: shares are whole slices; one step, likewise
  expect_the_end_of_one_rank({.training = with(spec::BatchNorm::ghost, 6), .steps = 1}, {2, 4});
  expect_the_end_of_one_rank({.training = with(spec::BatchNorm::ghost, 8), .steps = 1}, {3});
}

// Norms of two samples: with 2 x 2 at the end, their eight values differ, and four steps keep to a few roundings.
TEST(LargeBatchTest, GhostBatchNormOfTwoSamplesIsThatOfOneRankAfterSeveralSteps) {  // ghost
  for (const int64_t slice : {2, 3, 6}) {
    const LargeBatch large{.training = with(spec::BatchNorm::ghost, slice), .tolerance = 2e-5, .pixels = 32};
    expect_the_end_of_one_rank(large, {2, 4});
  }
}

// With 1 x 1 at the end a norm of two samples sees two values, a and b, and gives plus and minus one, whatever their
// distance: where they are close, a rounding of a - b is a rounding of the gradient many times larger. So it is on one
// rank: there, one weight of the stem one unit in its last place higher ends further away than ranks end from each
// other.
TEST(LargeBatchTest, GhostBatchNormOfTwoValuesPartsByNoMoreThanARoundingOfOneWeightDoes) {  // ghost
  LargeBatch large{.training = with(spec::BatchNorm::ghost, 2)};
  const at::Tensor one = end_on(1, large);
  const auto off = [&](const at::Tensor& end) { return (end - one).abs().max().item<double>(); };
  std::vector<double> on_ranks;
  for (const int64_t ranks : {2, 3, 4}) on_ranks.push_back(off(end_on(ranks, large)));
  double rounded = 0;
  for (large.nudged = 0; large.nudged < 4; ++large.nudged) rounded = std::max(rounded, off(end_on(1, large)));
  EXPECT_GT(rounded, 1e-3);  // from 6e-8 of one weight
  for (const double apart : on_ranks) EXPECT_LE(apart, rounded);
}

// Goyal et al. keep a worker's share constant as workers grow: a rank's local norm sees its micro-batch, so one rank
// that takes it in k passes has the gradient of k ranks. Local; running statistics are left out: k passes count k
// times.
TEST(LargeBatchTest, LocalBatchNormSeesTheSameRowsInPassesAsOnRanks) {
  for (const int64_t ranks : {2, 3, 4}) {
    LargeBatch one{.training = with(spec::BatchNorm::local), .steps = 1};
    one.training.micro_batch = 24 / ranks;
    LargeBatch many{.training = with(spec::BatchNorm::local), .steps = 1};
    const int64_t weights = network_of("smallcnn").parameter_count();
    EXPECT_TRUE(
        at::allclose(end_on(1, one).narrow(0, 0, weights), end_on(ranks, many).narrow(0, 0, weights), 1e-4, 1e-5));
  }
}

TEST(LargeBatchTest, DecayIsAddedOnceWhateverTheRanks) {  // sync
  LargeBatch large{.training = with(spec::BatchNorm::sync), .batch = 13};
  large.training.optimizer.weight_decay = 0.3;
  expect_the_end_of_one_rank(large, {2, 3, 4});
}

TEST(LargeBatchTest, EveryOptimizerTakesTheStepOfOneRank) {  // sync
  for (const auto name : {spec::OptimizerName::adamw, spec::OptimizerName::lars, spec::OptimizerName::lamb}) {
    LargeBatch large{.training = with(spec::BatchNorm::sync), .batch = 13};
    large.training.optimizer.name = name;
    large.training.optimizer.epsilon = 1e-4;  // else Adam divides rounding by rounding where a gradient is zero
    large.lr = name == spec::OptimizerName::lars ? 2 : 1e-3;
    expect_the_end_of_one_rank(large, {2, 3, 4});
  }
}

TEST(LargeBatchTest, RanksWithMorePassesThanOthersMeetInSyncBatchNorm) {  // sync: 5, 4 and 4 rows in passes of 4
  LargeBatch large{.training = with(spec::BatchNorm::sync), .batch = 13};
  large.training.micro_batch = 4;
  EXPECT_TRUE(end_on(3, large).isfinite().all().item<bool>());
  large.training.recompute = {"all"};  // batch norms meet again in backward
  EXPECT_TRUE(at::allclose(
      end_on(3, large),
      [&] {
        LargeBatch plain = large;
        plain.training.recompute = {};
        return end_on(3, plain);
      }(),
      0, 0));
}

TEST(LargeBatchTest, AllRanksTogetherSeeTheOneShuffleOfAnEpoch) {
  const auto collection = loader::synthetic_collection(29, 3);
  const auto ids = [&](int64_t ranks) {
    loader::LoaderOptions options;
    options.data.image_size = 8;
    options.global_batch = 8;
    options.num_ranks = ranks;
    std::vector<std::unique_ptr<loader::Loader>> loaders;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      loaders.push_back(loader::make_loader(collection, options, {.seed = options.seed}));
    }
    std::vector<int64_t> all;
    for (int64_t step = 0; step < 8; ++step) {  // two epochs
      for (auto& loader : loaders) {
        const auto batch = loader->next();
        all.insert(all.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      }
    }
    return all;
  };
  const auto one = ids(1);
  EXPECT_EQ(one.size(), 58U);
  for (const int64_t ranks : {2, 3, 4}) EXPECT_EQ(ids(ranks), one);
}

// Rounding to bfloat16 costs 2^-8 of a number, once for each rank's gradient and once for each addition: the sum is off
// by at most ranks * 2^-8 of the sum of all ranks' absolute gradients, times 1.02 for the higher orders.
TEST(LargeBatchTest, GradientsInBfloat16StayWithinTheirBound) {  // no batch norm
  constexpr int64_t kBatch = 12;
  for (const int64_t ranks : {2, 3, 4}) {
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      std::vector<std::vector<at::Tensor>> gradients;  // exact, rounded
      for (const auto precision : {spec::ReducePrecision::fp32, spec::ReducePrecision::bf16}) {
        auto network = tiny::network("mlp");
        StepOptions options;
        options.training.reduce_precision = precision;
        Step step(network, group, options);
        step.run(tiny::samples(group.rank() * kBatch / ranks, kBatch / ranks, kBatch), /*lr=*/0);
        gradients.push_back(step.optimizer().gradients());
      }
      auto own = tiny::network("mlp");  // this rank's part of the sum
      const auto alone = comm::single_group();
      Step step(own, *alone, {});
      step.run(tiny::samples(group.rank() * kBatch / ranks, kBatch / ranks, kBatch), 0);
      bool rounded = false;
      for (size_t i = 0; i < gradients[0].size(); ++i) {
        at::Tensor bound = step.optimizer().gradients()[i].abs();
        group.all_reduce_sum(bound);
        bound.mul_(1.02 / 256);  // alone, a step divides by its own rows: these are `ranks` times the parts
        const at::Tensor off = (gradients[1][i] - gradients[0][i]).abs();
        EXPECT_EQ(gradients[1][i].scalar_type(), at::kFloat);
        EXPECT_TRUE(off.le(bound + 1e-12).all().item<bool>());
        rounded = rounded || off.max().item<double>() > 0;
      }
      EXPECT_TRUE(rounded);
    });
  }
}

}  // namespace
}  // namespace lockstep::step
