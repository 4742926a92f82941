// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/operator_watch.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

const SeenOperator* find_operator(const SeenWork& work, const std::string& name) {
  for (const auto& seen : work.operators) {
    if (seen.what.name == name) return &seen;
  }
  return nullptr;
}

TEST(OperatorWatchTest, SeesWhatTheDeviceIsGivenAndNotTheCompositesAbove) {
  const at::Tensor image = at::ones({1, 3, 8, 8});
  const at::Tensor weight = at::ones({4, 3, 3, 3});
  WatchOptions once;
  once.repeats = 1;  // a median of several and the last one's sum are not of the same run
  const auto work = watch_operators([&] { at::conv2d(at::conv2d(image, weight), at::ones({4, 4, 1, 1})); }, once);
  EXPECT_EQ(work.timer, "clock");
  EXPECT_EQ(find_operator(work, "aten::conv2d"), nullptr);
  const auto* seen = find_operator(work, "aten::convolution");
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->what.kind, forecast::OperatorClass::convolution);
  EXPECT_EQ(seen->what.shape, (std::vector<int64_t>{1, 3, 8, 8, 4, 3, 3, 1, 1}));
  EXPECT_EQ(seen->count, 1);
  EXPECT_GT(seen->seconds, 0);
  EXPECT_GE(work.busy_seconds, seen->seconds);
}

TEST(OperatorWatchTest, CountsEqualCallsTogetherAndKnowsBackward) {
  const at::Tensor input = at::ones({5, 6});
  const at::Tensor weight = at::ones({6, 6}).requires_grad_();
  const auto work = watch_operators(
      [&] {
        weight.mutable_grad().reset();
        at::linear(at::linear(input, weight), weight).sum().backward();
      },
      {});
  int64_t forward = 0;
  int64_t backward = 0;
  for (const auto& seen : work.operators) {
    if (seen.what.kind != forecast::OperatorClass::matmul) continue;
    (seen.what.phase == forecast::Phase::backward ? backward : forward) += seen.count;
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 3);  // the input of the first asks for no gradient
}

TEST(OperatorWatchTest, AFailureInTheWorkLeavesNothingBehind) {
  const auto fail = [] { throw std::runtime_error("no"); };
  EXPECT_THROW(watch_operators(fail, {}), std::runtime_error);
  EXPECT_EQ(watch_operators([] {}, {}).operators.size(), 0U);
}

TEST(OperatorWatchTest, ARowHasWhatAFitNeeds) {
  const auto work = watch_operators([] { at::ones({100}).mul_(2); }, {});
  const auto* seen = find_operator(work, "aten::mul_");
  ASSERT_NE(seen, nullptr);
  const auto row = operator_row(*seen);
  EXPECT_EQ(row.at("kind").as_string(), "elementwise");
  EXPECT_EQ(row.at("bytes").as_double(), 800);
  EXPECT_EQ(row.at("shape").items().size(), 1U);
  EXPECT_EQ(row.find("workspace_bytes"), nullptr);
}

}  // namespace
}  // namespace lockstep::measure
