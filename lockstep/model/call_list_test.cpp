// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/call_list.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

// Values in place, views, lists in and out, a constant.
at::Tensor compute(const at::Tensor& image, const at::Tensor& constant) {
  at::Tensor sum = image + constant;
  sum.mul_(2);
  const auto parts = sum.view({-1, 6}).unbind(0);
  return at::cat({parts.front(), constant.flatten(), parts.back().relu_()}).add_(sum.flatten().sum());
}

TEST(CallListTest, MakesTheCallsAgainForOtherValues) {
  const at::Tensor first = at::rand({2, 6}), constant = at::rand({2, 6}), kept = constant.clone();
  at::Tensor output;
  const auto calls = record_calls([&] { output = compute(first, constant); });
  const CallList list(calls, {first}, {output});
  for (int i = 0; i < 3; ++i) {
    const at::Tensor image = at::rand({2, 6}) - 0.5;
    const at::Tensor before = image.clone();
    EXPECT_TRUE(at::equal(list.run({image}).front(), compute(image, constant)));
    EXPECT_TRUE(at::equal(image, before));
  }
  EXPECT_TRUE(at::equal(constant, kept));
}

}  // namespace
}  // namespace lockstep::model
