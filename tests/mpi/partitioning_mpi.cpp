// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/partitioning.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"
#include "tests/mpi/ranks.h"

namespace lockstep::step {
namespace {

at::Tensor row_of(const std::vector<model::Named>& named) {
  std::vector<at::Tensor> all;
  for (const auto& entry : named) all.push_back(entry.tensor.detach().to(at::kDouble).flatten());
  return at::cat(all);
}

Samples rows_of(const comm::Group& group, int64_t rows, int64_t step) {
  const int64_t start = group.rank() * rows / group.size();
  const int64_t end = (group.rank() + 1) * rows / group.size();
  return tiny::samples(start, end - start, rows, step);
}

struct Ends {
  at::Tensor weights, optimizer;
};

// Batches of 17, 16, 1 (a rank or more without rows) and 17, in passes of 3.
Ends trained(const std::string& model, spec::OptimizerName optimizer, int64_t zero) {
  comm::Group& group = mpi_test::ranks();
  auto network = tiny::network(model);
  StepOptions options;
  options.training.optimizer.name = optimizer;
  // Sums in another order differ by some 1e-7. AdamW divides by the gradient's own size, which makes steps of that
  // wherever a gradient is nearly nothing: a larger epsilon, so that a real difference is not lost among them.
  options.training.optimizer.epsilon = 1e-2;
  options.training.micro_batch = 3;
  options.training.clip_norm = 1;
  options.training.zero = zero;
  Step step(network, group, options);
  int64_t i = 0;
  for (const int64_t rows : {17, 16, 1, 17}) {
    EXPECT_TRUE(step.run(rows_of(group, rows, i), 0.02).finite);
    ++i;
  }
  step.assemble();
  auto state = step.state();
  std::sort(state.begin(), state.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return {row_of(network.parameters()), row_of(state)};
}

TEST(MpiPartitioningTest, GiveTheWeightsOfPlainDataParallel) {
  for (const char* model : {"mlp", "smallcnn"}) {
    for (const auto optimizer : {spec::OptimizerName::sgd, spec::OptimizerName::adamw}) {
      const Ends plain = trained(model, optimizer, 0);
      for (const int64_t zero : {1, 2, 3}) {
        const Ends cut = trained(model, optimizer, zero);
        EXPECT_TRUE(at::allclose(plain.weights, cut.weights, 1e-4, 1e-5)) << model << " zero " << zero;
        EXPECT_TRUE(at::allclose(plain.optimizer, cut.optimizer, 1e-4, 1e-5)) << model << " zero " << zero;
      }
    }
  }
}

TEST(MpiPartitioningTest, EveryRankEndsWithTheSameBits) {
  comm::Group& group = mpi_test::ranks();
  for (const int64_t zero : {1, 2, 3}) {
    const Ends mine = trained("smallcnn", spec::OptimizerName::adamw, zero);
    for (const auto& other : group.all_gather(mine.weights)) EXPECT_TRUE(at::equal(other, mine.weights));
    for (const auto& other : group.all_gather(mine.optimizer)) EXPECT_TRUE(at::equal(other, mine.optimizer));
  }
}

// Each process has a generator of its own: blocks that run again draw the same numbers.
TEST(MpiPartitioningTest, CarryAuxiliaryHeadsAndDropout) {
  comm::Group& group = mpi_test::ranks();
  std::vector<at::Tensor> ends;
  for (const int64_t zero : {0, 1, 2, 3}) {
    spec::Model model;
    model.name = "googlenet";
    model.classes = 3;
    auto network = model::make_network(model, 64, 7);
    StepOptions options;
    options.training.zero = zero;
    Step step(network, group, options);
    const at::Tensor images = (at::arange(2 * 3 * 64 * 64, at::kFloat).add(group.rank()) * 0.37).sin();
    const model::NamedTensors fields{{"image", images.view({2, 3, 64, 64})}, {"label", at::arange(2, at::kLong)}};
    step.run({0, 0, 2 * group.size(), fields}, 0.01);
    step.assemble();
    ends.push_back(row_of(network.parameters()));
    EXPECT_TRUE(at::allclose(ends.front(), ends.back(), 1e-3, 1e-4)) << zero;
  }
}

}  // namespace
}  // namespace lockstep::step
