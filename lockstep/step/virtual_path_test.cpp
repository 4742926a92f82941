// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_path.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

constexpr int64_t kSlices = 8;

struct Case {
  spec::Model model;
  spec::Training training;
};

Case plain_case(const std::string& name) {
  Case result;
  result.model.name = name;
  result.model.classes = tiny::kClasses;
  result.model.width = name == "linear" ? 0 : 4;
  result.training.virtual_ranks = kSlices;
  result.training.clip_norm = 0.5;
  return result;
}

Case dropping_vit() {
  Case result = plain_case("vit_tiny_patch16_224");
  result.model.width = 12;
  result.model.heads = 3;
  result.model.depth = 2;
  result.model.patch = 4;
  result.model.dropout = 0.2;
  result.model.drop_path = 0.3;
  result.training.mixup = 0.4;
  result.training.optimizer.name = spec::OptimizerName::adamw;
  return result;
}

// Weights, statistics, optimizer state and moving average after some steps, among them a smaller batch and one with
// fewer rows than slices; and the losses.
std::vector<at::Tensor> state_after(const Case& what, comm::Group& group) {
  auto network = model::make_network(what.model, tiny::kSize, /*seed=*/7);
  Ema ema(0.9, network);
  StepOptions options;
  options.training = what.training;
  options.ema = &ema;
  Step step(network, group, options);
  std::vector<at::Tensor> all;
  int64_t position = 0;
  for (const int64_t rows : {64, 64, 50, 5}) {
    const auto mine = run::rank_range({position, position + rows}, group.rank(), group.size(), kSlices);
    const auto result = step.run(tiny::samples(mine.begin, mine.size(), rows, position), 0.05);
    EXPECT_TRUE(result.finite);
    EXPECT_EQ(result.samples, rows);
    all.push_back(at::full({1}, result.loss, at::kDouble));
    all.push_back(at::full({1}, result.gradient_norm, at::kDouble));
    position += rows;
  }
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().clone());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.clone());
  for (const auto& entry : step.state()) all.push_back(entry.tensor.clone());
  for (const auto& entry : ema.averages()) all.push_back(entry.tensor.clone());
  return all;
}

void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << what << ", tensor " << i;
}

void expect_same_bits_on_any_ranks(const Case& what) {
  at::set_num_threads(1);
  const auto alone = state_after(what, *comm::single_group());
  for (const int64_t num_ranks : {2, 3, 4, 8}) {
    std::mutex mutex;
    comm::run_thread_ranks(num_ranks, [&](comm::Group& group) {
      const auto mine = state_after(what, group);
      const std::lock_guard lock(mutex);
      expect_same_bits(alone, mine, base::text("rank ", group.rank(), " of ", num_ranks));
    });
  }
}

TEST(VirtualPathTest, APerceptronHasTheSameBitsOnAnyNumberOfRanks) {
  expect_same_bits_on_any_ranks(plain_case("mlp"));
}

TEST(VirtualPathTest, BatchNormsHaveTheSameBitsOnAnyNumberOfRanks) {
  expect_same_bits_on_any_ranks(plain_case("smallcnn"));
}

TEST(VirtualPathTest, RandomNumbersBelongToTheSlice) {
  expect_same_bits_on_any_ranks(dropping_vit());
}

TEST(VirtualPathTest, RecomputationLeavesTheBitsAsTheyAre) {
  at::set_num_threads(1);
  Case what = dropping_vit();
  const auto kept = state_after(what, *comm::single_group());
  what.training.recompute = {"all"};
  expect_same_bits(kept, state_after(what, *comm::single_group()), "recomputed");
}

TEST(VirtualPathTest, SlicesAtTheSameTimeHaveTheBitsOfOneAfterTheOther) {
  for (const Case& what : {plain_case("smallcnn"), dropping_vit()}) {
    at::set_num_threads(1);
    const auto alone = state_after(what, *comm::single_group());
    at::set_num_threads(3);
    for (int repeat = 0; repeat < 3; ++repeat) {
      expect_same_bits(alone, state_after(what, *comm::single_group()), "three lanes");
    }
    at::set_num_threads(1);
  }
}

TEST(VirtualPathTest, LanesAreAsManyAsTheThreadsAllow) {
  Case what = plain_case("mlp");
  const auto network = model::make_network(what.model, tiny::kSize, 7);
  const auto group = comm::single_group();
  const auto parameters = network.parameters();
  StepOptions options;
  options.training = what.training;
  at::set_num_threads(6);
  EXPECT_EQ(VirtualPath(network, parameters, *group, options).lanes(), 6);
  options.training.threads_per_slice = 4;
  EXPECT_EQ(VirtualPath(network, parameters, *group, options).lanes(), 1);
  options.training.threads_per_slice = 1;
  options.training.virtual_ranks = 2;
  EXPECT_EQ(VirtualPath(network, parameters, *group, options).lanes(), 2);
  at::set_num_threads(1);
}

TEST(VirtualPathTest, FollowsPlainDataParallelWithinRounding) {
  at::set_num_threads(1);
  Case what = plain_case("mlp");
  const auto sliced = state_after(what, *comm::single_group());
  what.training.virtual_ranks = 0;
  const auto plain = state_after(what, *comm::single_group());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(at::allclose(plain[i].to(at::kDouble), sliced[i].to(at::kDouble), 1e-4, 1e-5)) << i;
  }
}

TEST(VirtualPathTest, AStepThatIsNotTakenLeavesTheStatistics) {
  at::set_num_threads(1);
  const Case what = plain_case("smallcnn");
  auto network = model::make_network(what.model, tiny::kSize, 7);
  const auto group = comm::single_group();
  StepOptions options;
  options.training = what.training;
  Step step(network, *group, options);
  const at::Tensor statistic = network.buffers().front().tensor;
  const at::Tensor before = statistic.clone();
  Samples bad = tiny::samples(0, 64, 64);
  bad.fields.at("image")[0].fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(step.run(bad, 0.1).finite);
  EXPECT_TRUE(at::equal(statistic, before));
  EXPECT_TRUE(step.run(tiny::samples(0, 64, 64), 0.1).finite);
  EXPECT_FALSE(at::equal(statistic, before));
}

TEST(VirtualPathTest, MoreRanksThanSlicesAreAUserError) {
  Case what = plain_case("mlp");
  what.training.virtual_ranks = 2;
  try {
    comm::run_thread_ranks(3, [&](comm::Group& group) { state_after(what, group); });
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("3 ranks share 2 slices"));
  }
}

TEST(VirtualPathTest, OneRanksWishToStopReachesAll) {
  at::set_num_threads(1);
  const Case what = plain_case("mlp");
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    auto network = model::make_network(what.model, tiny::kSize, 7);
    StepOptions options;
    options.training = what.training;
    Step step(network, group, options);
    const auto mine = run::rank_range({0, 24}, group.rank(), 3, kSlices);
    EXPECT_TRUE(step.run(tiny::samples(mine.begin, mine.size(), 24), 0.1, group.rank() == 2).stop);
    EXPECT_FALSE(step.run(tiny::samples(mine.begin, mine.size(), 24), 0.1, false).stop);
  });
}

}  // namespace
}  // namespace lockstep::step
