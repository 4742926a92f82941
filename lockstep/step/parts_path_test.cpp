// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/parts_path.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/step/reduced_path.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(PartsPathTest, LeavesEachRankItsPartOfTheSumOfAllPasses) {
  comm::run_thread_ranks(3, [](comm::Group& group) {
    StepOptions options;
    options.training.micro_batch = 2;  // 7 rows: two passes on one rank, one on the others
    const auto rows = [&](int64_t rank) { return (rank + 1) * 7 / 3 - rank * 7 / 3; };
    const Samples mine = tiny::samples(group.rank() * 7 / 3, rows(group.rank()), 7);

    auto whole = tiny::network("mlp");
    const auto parameters = whole.parameters();
    ReducedPath plain(whole, parameters, group, options);
    const BatchSums expected = plain.run(mine, 1, false);

    auto cut = tiny::network("mlp");
    Partitioning partitioning(cut, 0, group, 2);
    PartsPath path(cut, group, options, partitioning);
    partitioning.begin_step();
    const BatchSums sums = path.run(mine, 1, group.rank() == 2);
    EXPECT_EQ(sums.samples, 7);
    EXPECT_TRUE(sums.stop);
    EXPECT_NEAR(sums.totals[0], expected.totals[0], 1e-5);

    std::vector<at::Tensor> all;
    for (const auto& parameter : parameters) all.push_back(parameter.tensor.grad());
    EXPECT_NEAR(path.norm(partitioning.gradients()), plain.norm(all), 1e-5);
    for (const auto& parameter : cut.parameters()) EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
  });
}

TEST(PartsPathTest, RefusesMoreRowsThanARanksShare) {
  comm::run_thread_ranks(2, [](comm::Group& group) {
    const StepOptions options;
    auto network = tiny::network("mlp");
    Partitioning partitioning(network, 0, group, 2);
    PartsPath path(network, group, options, partitioning);
    EXPECT_THROW(path.run(tiny::samples(0, 4, 4), 1, false), base::Error);
  });
}

}  // namespace
}  // namespace lockstep::step
