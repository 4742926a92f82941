// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/cut_state.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

// Every rank's row, as whoever is handed them sees it, put together.
std::map<std::string, at::Tensor> put_together(const CutState& cut, comm::Group& group) {
  at::Tensor row = at::zeros({cut.length()});
  cut.pack(row);
  std::map<std::string, at::Tensor> all;
  for (const auto& whole : cut.wholes()) {
    all[whole.name] = at::full({whole.slot->numel}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  }
  const auto rows = group.all_gather(row);
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    for (const auto& partition : cut.partitions(rows[static_cast<size_t>(rank)], rank)) {
      all.at(partition.whole.name).narrow(0, partition.first, partition.values.numel()).copy_(partition.values);
    }
  }
  for (const auto& whole : cut.wholes()) {
    at::Tensor& tensor = all.at(whole.name);
    tensor = tensor.as_strided(whole.slot->sizes, whole.slot->strides);
  }
  return all;
}

void expect_whole(Step& step, const model::Network& network, comm::Group& group) {
  const CutState cut = step.cut_state();
  const auto all = put_together(cut, group);
  step.assemble();
  std::vector<model::Named> expected = step.state();
  if (step.partitioning()->level() == 3) {
    for (const auto& entry : network.parameters()) expected.push_back(entry);
  }
  EXPECT_EQ(all.size() + cut.shared().size(), expected.size());
  for (const auto& shared : cut.shared()) EXPECT_FALSE(all.contains(shared.name)) << shared.name;
  for (const auto& entry : expected) {
    const auto found = all.find(entry.name);
    EXPECT_TRUE(found == all.end() || at::equal(found->second, entry.tensor.detach())) << entry.name;
  }
}

TEST(CutStateTest, TheRowsOfAllRanksMakeUpTheWholeState) {
  for (const int64_t level : {1, 2, 3}) {
    comm::run_thread_ranks(3, [level](comm::Group& group) {
      auto network = tiny::network();
      StepOptions options;
      options.training.zero = level;
      options.training.optimizer.name = spec::OptimizerName::adamw;
      Step step(network, group, options);
      EXPECT_TRUE(step.run(tiny::samples(4 * group.rank(), 4, 12), 0.05).finite);
      EXPECT_EQ(step.cut_state().wholes().size(), network.parameters().size() * (level == 3 ? 3 : 2));
      expect_whole(step, network, group);
    });
  }
}

// After a rewind, say: the network has the weights, and the partitioning has not seen them yet.
TEST(CutStateTest, WeightsThatSomebodyPutIntoTheNetworkAreTheOnesThatCount) {
  comm::run_thread_ranks(2, [](comm::Group& group) {
    auto network = tiny::network();
    StepOptions options;
    options.training.zero = 3;
    Step step(network, group, options);
    expect_whole(step, network, group);
    step.run(tiny::samples(4 * group.rank(), 4, 8), 0.05);
    step.assemble();
    for (const auto& entry : network.parameters()) entry.tensor.detach().add_(1);
    expect_whole(step, network, group);
  });
}

}  // namespace
}  // namespace lockstep::step
