// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/virtual_check.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

StepOptions eight_slices(int64_t global_batch) {
  StepOptions options;
  options.training.virtual_ranks = 8;
  options.training.global_batch = global_batch;
  return options;
}

TEST(VirtualCheckTest, RefusesASliceWithOneValueAChannel) {
  const auto network = tiny::network();  // at 8 pixels its last maps are 1 x 1
  const at::Tensor before = network.buffers().front().tensor.clone();
  try {
    check_slices(network, eight_slices(64), 64 * 3 + 13, tiny::kSize);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("8 slices of a batch of 13 samples"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("training.virtual_ranks=4"));
  }
  EXPECT_TRUE(at::equal(before, network.buffers().front().tensor));
}

TEST(VirtualCheckTest, RefusesAShareWithOneValueAChannel) {
  const auto network = tiny::network();
  StepOptions options;
  options.training.global_batch = 8;
  const auto refused = [&](int64_t samples, int64_t ranks) {
    try {
      check_shares(network, options, samples, tiny::kSize, ranks);
      return std::string();
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused(24, 1), "");
  EXPECT_EQ(refused(24, 4), "");
  EXPECT_THAT(refused(25, 1), testing::HasSubstr("a batch of 1 sample on 1 rank leaves a pass of one sample"));
  EXPECT_THAT(refused(24, 8), testing::HasSubstr("a batch of 8 samples on 8 ranks"));
  EXPECT_THAT(refused(27, 2), testing::HasSubstr("a batch of 3 samples on 2 ranks"));
  options.training.micro_batch = 7;
  EXPECT_THAT(refused(24, 1), testing::HasSubstr("a batch of 8 samples on 1 rank"));
  options.training.batch_norm = spec::BatchNorm::sync;
  EXPECT_EQ(refused(24, 8), "");
  options = {};
  options.training.global_batch = 8;
  options.freeze_norm = true;
  EXPECT_EQ(refused(25, 1), "");
}

TEST(VirtualCheckTest, TakesWhatHasAVariance) {
  const auto network = tiny::network();
  check_slices(network, eight_slices(64), 64 * 3, tiny::kSize);       // no smaller batch
  check_slices(network, eight_slices(64), 64 * 3 + 16, tiny::kSize);  // two rows a slice
  check_slices(tiny::network("mlp"), eight_slices(64), 64 * 3 + 1, tiny::kSize);
  StepOptions frozen = eight_slices(64);
  frozen.freeze_norm = true;
  check_slices(network, frozen, 64 * 3 + 1, tiny::kSize);
}

}  // namespace
}  // namespace lockstep::step
