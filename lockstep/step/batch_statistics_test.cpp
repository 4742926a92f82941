// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/batch_statistics.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {

TEST(BatchStatisticsTest, RestoresWhatItKept) {
  const auto network = tiny::network();
  BatchStatistics statistics(network, 0);
  at::Tensor mean = network.buffers()[0].tensor;
  const double before = mean[0].item<double>();
  statistics.keep();
  mean.fill_(42);
  statistics.restore();
  EXPECT_EQ(mean[0].item<double>(), before);
}

TEST(BatchStatisticsTest, AStatisticThatIsNotFiniteCountsAsUnchanged) {
  const auto group = comm::single_group();
  const auto network = tiny::network();
  BatchStatistics statistics(network, 0);
  at::Tensor mean = network.buffers()[0].tensor;
  const double before = mean[0].item<double>();
  statistics.keep();
  mean[0].fill_(std::numeric_limits<double>::quiet_NaN());
  mean[1].fill_(3);
  statistics.merge(*group, 1, 1);
  EXPECT_EQ(mean[0].item<double>(), before);
  EXPECT_EQ(mean[1].item<double>(), 3);
}

TEST(BatchStatisticsTest, LeavesFrozenBlocksAlone) {
  const auto network = tiny::network();
  BatchStatistics statistics(network, network.blocks().size() - 1);
  at::Tensor mean = network.buffers()[0].tensor;
  statistics.keep();
  mean.fill_(42);
  statistics.restore();
  EXPECT_EQ(mean[0].item<double>(), 42);
}

}  // namespace lockstep::step
