// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

StepOptions options(const spec::Training& training = {}) {
  StepOptions result;
  result.training = training;
  return result;
}

std::vector<at::Tensor> values_of(const model::Network& network) {
  std::vector<at::Tensor> all;
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.detach().clone());
  return all;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

TEST(StepTest, LearnsAFixedBatch) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  Step step(network, *group, options());
  const double before = step.run(tiny::samples(0, 12, 12), 0.1).loss;
  StepResult last;
  for (int i = 0; i < 30; ++i) last = step.run(tiny::samples(0, 12, 12, i), 0.1);
  EXPECT_LT(last.loss, 0.5 * before);
  EXPECT_EQ(last.samples, 12);
  EXPECT_TRUE(last.finite);
}

TEST(StepTest, FrozenNormsKeepTheirStatisticsWhileWeightsLearn) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  ASSERT_FALSE(network.buffers().empty());
  const at::Tensor statistics = network.buffers().front().tensor.clone();
  const at::Tensor weights = network.parameters().front().tensor.detach().clone();
  StepOptions frozen = options();
  frozen.freeze_norm = true;
  Step step(network, *group, frozen);
  step.run(tiny::samples(0, 12, 12), 0.1);
  EXPECT_TRUE(at::equal(network.buffers().front().tensor, statistics));
  EXPECT_FALSE(at::equal(network.parameters().front().tensor, weights));
}

TEST(StepTest, TwoRunsGiveTheSameBits) {
  std::vector<std::vector<at::Tensor>> ends;
  for (int run = 0; run < 2; ++run) {
    const auto group = comm::single_group();
    auto network = tiny::network();
    Step step(network, *group, options());
    for (int i = 0; i < 4; ++i) step.run(tiny::samples(i * 6, 6, 6, i), 0.1);
    ends.push_back(values_of(network));
  }
  EXPECT_TRUE(same_bits(ends[0], ends[1]));
}

TEST(StepTest, MicroBatchesAddUpToTheGradientOfTheWhole) {
  std::vector<double> losses;
  std::vector<at::Tensor> ends;
  for (const int64_t micro : {0, 4}) {
    spec::Training training;
    training.micro_batch = micro;
    const auto group = comm::single_group();
    auto network = tiny::network("mlp");  // no batch norm: it would see the micro-batch
    Step step(network, *group, options(training));
    losses.push_back(step.run(tiny::samples(0, 10, 10), 0.1).loss);
    ends.push_back(values_of(network)[0]);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  EXPECT_TRUE(at::allclose(ends[0], ends[1], 1e-5, 1e-6));
}

TEST(StepTest, RowsWithoutATargetLeaveTheMeanOfTheOthers) {
  std::vector<at::Tensor> ends;
  for (const bool with_bad : {false, true}) {
    const auto group = comm::single_group();
    auto network = tiny::network("mlp");
    Step step(network, *group, options());
    Samples samples = tiny::samples(0, with_bad ? 6 : 5, with_bad ? 6 : 5);
    if (with_bad) {
      samples.fields.at("label")[5].fill_(-1);
      samples.was_read = {1, 1, 1, 1, 1, 0};
    }
    const auto result = step.run(samples, 0.1);
    EXPECT_EQ(result.samples, 5);
    ends.push_back(values_of(network)[0]);
  }
  EXPECT_TRUE(at::allclose(ends[0], ends[1], 1e-5, 1e-6));
}

TEST(StepTest, ANonFiniteLossChangesNothing) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  Step step(network, *group, options());
  step.run(tiny::samples(0, 6, 6), 0.1);
  const auto before = values_of(network);
  Samples bad = tiny::samples(0, 6, 6);
  bad.fields.at("image")[0].fill_(std::numeric_limits<double>::infinity());
  const auto result = step.run(bad, 0.1);
  EXPECT_FALSE(result.finite);
  EXPECT_TRUE(same_bits(before, values_of(network)));
}

TEST(StepTest, FrozenBlocksStayAsTheyAre) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  auto frozen = options();
  frozen.train_from = network.index_of("head");
  Step step(network, *group, frozen);
  const auto before = values_of(network);
  step.run(tiny::samples(0, 6, 6), 0.1);
  const auto after = values_of(network);
  const auto names = network.parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    const bool head = i < names.size() && names[i].name.rfind("head.", 0) == 0;
    EXPECT_EQ(at::equal(before[i], after[i]), !head) << i;
  }
}

TEST(StepTest, CachedFeaturesGiveTheSameStepAsFrozenBlocks) {
  std::vector<std::vector<at::Tensor>> ends;
  for (const bool cached : {false, true}) {
    const auto group = comm::single_group();
    auto network = tiny::network();
    auto frozen = options();
    frozen.train_from = network.index_of("head");
    Step step(network, *group, frozen);
    Samples samples = tiny::samples(0, 6, 6);
    if (cached) {
      samples.features = network.run(network.inputs_from(samples.fields), model::Mode::evaluate, 0, frozen.train_from);
      for (auto& feature : samples.features) feature = feature.detach();
      samples.from = frozen.train_from;
    }
    step.run(samples, 0.1);
    ends.push_back(values_of(network));
  }
  EXPECT_TRUE(same_bits(ends[0], ends[1]));
}

TEST(StepTest, AnEmptyShareIsNoError) {
  const auto group = comm::single_group();
  auto network = tiny::network();
  Step step(network, *group, options());
  const auto before = values_of(network);
  const auto result = step.run(tiny::samples(0, 0, 4), 0.1);
  EXPECT_EQ(result.samples, 0);
  EXPECT_TRUE(same_bits(before, values_of(network)));
}

TEST(StepTest, ASingleRowLeavesFiniteStatistics) {
  const auto group = comm::single_group();
  auto network = tiny::network();  // at 8 pixels its last maps are 1 x 1: one value a channel
  Step step(network, *group, options());
  step.run(tiny::samples(0, 1, 1), 0.1);
  for (const auto& buffer : network.buffers()) EXPECT_TRUE(buffer.tensor.isfinite().all().item<bool>()) << buffer.name;
}

TEST(StepTest, SixteenBitsTrainFloatMastersThatFollowTheFloatRun) {
  std::vector<double> losses;
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16, spec::Precision::amp}) {
    spec::Training training;
    training.precision = precision;
    const auto group = comm::single_group();
    auto network = tiny::network();
    Step step(network, *group, options(training));
    StepResult last;
    for (int i = 0; i < 4; ++i) last = step.run(tiny::samples(0, 60, 60, i), 0.02);
    losses.push_back(last.loss);
    for (const auto& parameter : network.parameters()) EXPECT_EQ(parameter.tensor.scalar_type(), at::kFloat);
  }
  for (size_t i = 1; i < losses.size(); ++i) {
    EXPECT_NE(losses[0], losses[i]);
    EXPECT_NEAR(losses[0], losses[i], 0.1);
  }
}

TEST(StepTest, NoElementOfAClippedGradientMovesItsWeightFurther) {
  spec::Training training;
  training.optimizer.momentum = 0;
  training.optimizer.weight_decay = 0;
  std::vector<double> furthest;
  for (const double limit : {0.0, 0.01}) {
    training.clip_value = limit;
    const auto group = comm::single_group();
    auto network = tiny::network("mlp");
    const auto before = values_of(network);
    Step step(network, *group, options(training));
    step.run(tiny::samples(0, 6, 6), 1);
    const auto after = values_of(network);
    furthest.push_back(0);
    for (size_t i = 0; i < before.size(); ++i) {
      furthest.back() = std::max(furthest.back(), (after[i] - before[i]).abs().max().item<double>());
    }
  }
  EXPECT_GT(furthest[0], 0.02);
  EXPECT_NEAR(furthest[1], 0.01, 1e-6);
}

TEST(StepTest, TellsAStopThatWasAskedFor) {
  const auto group = comm::single_group();
  auto network = tiny::network("mlp");
  Step step(network, *group, options());
  EXPECT_FALSE(step.run(tiny::samples(0, 4, 4), 0.1).stop);
  EXPECT_TRUE(step.run(tiny::samples(0, 4, 4), 0.1, true).stop);
}

}  // namespace
}  // namespace lockstep::step
