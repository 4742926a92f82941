// SPDX-License-Identifier: Apache-2.0
// Batch norm over the ranks and sums in bf16, over real MPI; lockstep/step/large_batch_test.cpp has the cases.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"
#include "tests/mpi/ranks.h"

namespace lockstep::step {
namespace {

at::Tensor state_of(const model::Network& network) {
  std::vector<at::Tensor> all;
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().flatten());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.flatten());
  return at::cat(all);
}

// With `idle` the first of several ranks has no rows.
at::Tensor trained_on(comm::Group& group, const spec::Training& training, int64_t batch, bool idle = false) {
  auto network = tiny::network();
  StepOptions options;
  options.training = training;
  Step step(network, group, options);
  const int64_t first = idle && group.size() > 1 ? 1 : 0, ranks = group.size() - first;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t begin = std::max<int64_t>(group.rank() - first, 0) * batch / ranks;
    const int64_t rows = (group.rank() - first + 1) * batch / ranks - begin;
    EXPECT_TRUE(step.run(tiny::samples(i * batch + begin, rows, batch, i), 0.1).finite);
  }
  return state_of(network);
}

TEST(MpiLargeBatchTest, SyncBatchNormTrainsAsOneRankDoes) {
  comm::Group& group = mpi_test::ranks();
  const auto alone = comm::single_group();
  spec::Training training;
  training.batch_norm = spec::BatchNorm::sync;
  struct Case {
    int64_t batch;
    bool idle;
  };
  for (const auto& [batch, idle] : {Case{12, false}, {13, false}, {12, true}}) {
    const at::Tensor many = trained_on(group, training, batch, idle);
    const at::Tensor one = trained_on(*alone, training, batch);
    EXPECT_TRUE(at::allclose(many, one, 1e-4, 1e-5)) << batch << ": " << (many - one).abs().max();
    for (const auto& other : group.all_gather(many)) EXPECT_TRUE(at::equal(other, many));
  }
}

TEST(MpiLargeBatchTest, SumsInBfloat16TrainNearlyAsFloatSumsDo) {
  comm::Group& group = mpi_test::ranks();
  spec::Training training;
  training.batch_norm = spec::BatchNorm::sync;
  const at::Tensor exact = trained_on(group, training, 12);
  training.reduce_precision = spec::ReducePrecision::bf16;
  const at::Tensor rounded = trained_on(group, training, 12);
  EXPECT_FALSE(at::equal(exact, rounded));
  EXPECT_LT((exact - rounded).abs().max().item<double>(), 0.05);
  for (const auto& other : group.all_gather(rounded)) EXPECT_TRUE(at::equal(other, rounded));
}

}  // namespace
}  // namespace lockstep::step
