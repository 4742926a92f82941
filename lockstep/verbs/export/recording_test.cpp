// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/recording.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs::exporting {
namespace {

std::vector<Call> calls_of(int64_t batch) {
  const at::Tensor image = at::ones({batch, 3, 8, 8}), weight = at::ones({4, 3, 3, 3});
  return model::record_calls([&] { at::conv2d(image, weight, {}, 2, 1).relu_().view({batch * 2, -1}); });
}

TEST(RecordingTest, WhatDiffersBetweenTwoBatchesFollowsTheBatch) {
  const auto first = calls_of(kFirstBatch), second = calls_of(kSecondBatch);
  const auto pairs = pair_calls(first, second);
  EXPECT_EQ(pairs[0].two(3), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(pairs[0].integer(6), 1);
  EXPECT_FALSE(pairs[0].tensor(2).defined());
  EXPECT_TRUE(pairs[1].is_in_place());
  EXPECT_THROW(pairs[2].integers(1), base::Error);
  const Sizes sizes = pairs[2].output_sizes();
  EXPECT_EQ(sizes[0].per_batch, 2);
  EXPECT_FALSE(sizes[1].varies());
  EXPECT_EQ(sizes[1].fixed, 32);
  EXPECT_TRUE(pairs[2].output_varies());
}

TEST(RecordingTest, OtherCallsForAnotherBatchAreABug) {
  const auto few = model::record_calls([] { at::ones({2}).relu(); });
  const auto others = model::record_calls([] { at::ones({2}).sigmoid(); });
  EXPECT_THROW(pair_calls(few, others), base::Error);
  EXPECT_THROW(pair_calls(few, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::exporting
