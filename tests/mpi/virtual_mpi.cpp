// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lockstep/run/order.h"
#include "lockstep/step/step.h"
#include "lockstep/step/tiny_network.h"
#include "tests/mpi/ranks.h"

namespace lockstep::step {
namespace {

at::Tensor all_bits(const model::Network& network, Step& step) {
  std::vector<at::Tensor> all;
  for (const auto& entry : network.parameters()) all.push_back(entry.tensor.detach().flatten());
  for (const auto& entry : network.buffers()) all.push_back(entry.tensor.flatten());
  for (const auto& entry : step.state()) all.push_back(entry.tensor.to(at::kFloat).flatten());
  return at::cat(all);
}

// Some steps with virtual ranks, the last of them over fewer rows than there are slices.
at::Tensor trained(comm::Group& group, int64_t num_slices) {
  auto network = tiny::network();
  StepOptions options;
  options.training.virtual_ranks = num_slices;
  options.training.clip_norm = 0.1;
  Step step(network, group, options);
  int64_t position = 0;
  for (const int64_t rows : {32, 32, 25, 3}) {
    const auto mine = run::rank_range({position, position + rows}, group.rank(), group.size(), num_slices);
    EXPECT_EQ(step.run(tiny::samples(mine.begin, mine.size(), rows, position), 0.1).samples, rows);
    position += rows;
  }
  return all_bits(network, step);
}

TEST(MpiVirtualTest, ManyRanksHaveTheBitsOfOne) {
  comm::Group& group = mpi_test::ranks();
  const auto alone = comm::single_group();
  for (const int64_t num_slices : {4, 8, 16}) {
    EXPECT_TRUE(at::equal(trained(group, num_slices), trained(*alone, num_slices))) << num_slices << " slices";
  }
}

}  // namespace
}  // namespace lockstep::step
