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
  return record_calls([&] { at::conv2d(image, weight, {}, 2, 1).relu_().view({batch * 2, -1}); });
}

TEST(RecordingTest, KeepsWhatOurCodeCallsAndNotWhatThatCalls) {
  const auto calls = calls_of(2);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].name, "aten::conv2d");
  EXPECT_EQ(calls[1].name, "aten::relu_");
  EXPECT_EQ(calls[2].name, "aten::view");
  EXPECT_EQ(calls[0].outputs[0].toTensor().unsafeGetTensorImpl(), calls[1].inputs[0].toTensor().unsafeGetTensorImpl());
  EXPECT_EQ(calls[0].outputs[0].toTensor().unsafeGetTensorImpl(), calls[1].outputs[0].toTensor().unsafeGetTensorImpl());
  at::ones({1}).relu();  // nobody listens any more
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
  const auto few = record_calls([] { at::ones({2}).relu(); });
  const auto others = record_calls([] { at::ones({2}).sigmoid(); });
  EXPECT_THROW(pair_calls(few, others), base::Error);
  EXPECT_THROW(pair_calls(few, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::exporting
