// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/step/tiny_network.h"
#include "tests/mpi/ranks.h"

namespace lockstep::step {
namespace {

at::Tensor flat(const model::Network& network) {
  std::vector<at::Tensor> all;
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().flatten());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.flatten());
  return at::cat(all);
}

// This rank's slice of a batch of `rows`, as the loader cuts it.
Samples share(const comm::Group& group, int64_t rows, int64_t step) {
  const int64_t start = group.rank() * rows / group.size();
  const int64_t end = (group.rank() + 1) * rows / group.size();
  return tiny::samples(start, end - start, rows, step);
}

TEST(MpiStepTest, ManyRanksTakeTheStepOfOne) {
  comm::Group& group = mpi_test::ranks();
  auto together = tiny::network("mlp");
  auto alone = tiny::network("mlp");
  const auto single = comm::single_group();
  StepOptions options;
  options.training.micro_batch = 3;
  Step step_together(together, group, options);
  Step step_alone(alone, *single, options);
  for (int64_t i = 0; i < 5; ++i) {
    const auto many = step_together.run(share(group, 17, i), 0.1);
    const auto one = step_alone.run(tiny::samples(0, 17, 17, i), 0.1);
    EXPECT_NEAR(many.loss, one.loss, 1e-5);
    EXPECT_EQ(many.figures, one.figures);
    EXPECT_EQ(many.samples, 17);
  }
  EXPECT_TRUE(at::allclose(flat(together), flat(alone), 1e-4, 1e-5));
}

TEST(MpiStepTest, EveryRankEndsWithTheSameBits) {
  comm::Group& group = mpi_test::ranks();
  auto network = tiny::network();
  Step step(network, group, {});
  for (int64_t i = 0; i < 4; ++i) step.run(share(group, 13, i), 0.1);
  for (const auto& other : group.all_gather(flat(network))) EXPECT_TRUE(at::equal(other, flat(network)));
}

TEST(MpiStepTest, RecomputationLeavesTheBitsOfManyRanksAsTheyAre) {
  comm::Group& group = mpi_test::ranks();
  std::vector<at::Tensor> ends;
  for (const bool again : {false, true}) {
    auto network = tiny::network();
    StepOptions options;
    options.training.micro_batch = 4;
    if (again) options.training.recompute = {"all"};
    Step step(network, group, options);
    for (int64_t i = 0; i < 4; ++i) step.run(share(group, 13, i), 0.1);
    ends.push_back(flat(network));
  }
  EXPECT_TRUE(at::equal(ends[0], ends[1]));
}

TEST(MpiStepTest, ABatchSmallerThanTheRanksIsTrained) {
  comm::Group& group = mpi_test::ranks();
  auto network = tiny::network();
  Step step(network, group, {});
  const auto before = flat(network);
  const auto result = step.run(share(group, 1, 0), 0.1);
  EXPECT_EQ(result.samples, 1);
  EXPECT_TRUE(result.finite);
  EXPECT_FALSE(at::equal(before, flat(network)));
  for (const auto& other : group.all_gather(flat(network))) EXPECT_TRUE(at::equal(other, flat(network)));
}

TEST(MpiStepTest, OneRanksWishToStopReachesAll) {
  comm::Group& group = mpi_test::ranks();
  auto network = tiny::network("mlp");
  Step step(network, group, {});
  EXPECT_TRUE(step.run(share(group, 6, 0), 0.1, group.rank() == group.size() - 1).stop);
  EXPECT_FALSE(step.run(share(group, 6, 1), 0.1, false).stop);
}

TEST(MpiStepTest, ANonFiniteShareStopsTheStepOnAllRanks) {
  comm::Group& group = mpi_test::ranks();
  auto network = tiny::network();
  Step step(network, group, {});
  const auto before = flat(network);
  auto samples = share(group, 6, 0);
  if (group.rank() == 0) samples.fields.at("image").fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(step.run(samples, 0.1).finite);
  EXPECT_TRUE(at::equal(before, flat(network)));
}

}  // namespace
}  // namespace lockstep::step
