// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/profile.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace lockstep::training {

TEST(OperatorProfileTest, CountsForwardAndBackwardByClass) {
  const at::Tensor images = at::ones({4, 8, 32, 32});
  const at::Tensor kernel = at::ones({8, 8, 3, 3}).requires_grad_(true);
  const OperatorProfile profile;
  at::conv2d(images, kernel).relu().sum().backward();
  const auto seconds = profile.seconds_by_class();
  EXPECT_GT(seconds.at("convolution"), 0);
  EXPECT_GT(seconds.at("convolution_weight_gradient"), 0);
  EXPECT_GT(seconds.at("elementwise"), 0);
  EXPECT_EQ(seconds.count("optimizer"), 0U);
}

TEST(OperatorProfileTest, CountsOnlyWhileItLives) {
  { const OperatorProfile over; }
  at::conv2d(at::ones({1, 1, 4, 4}), at::ones({1, 1, 3, 3}));
  const OperatorProfile profile;
  EXPECT_TRUE(profile.seconds_by_class().empty());
}

}  // namespace lockstep::training
