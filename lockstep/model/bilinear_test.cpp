// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/bilinear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::model {
namespace {

// Two images of two channels, 3 rows and 4 columns, no two values alike.
at::Tensor map() {
  return at::arange(48, at::kDouble).mul(0.7).sin().view({2, 2, 3, 4});
}

// [2, 3, 2]: between pixels, on none of their middles, so that the gradient exists.
at::Tensor points() {
  return at::tensor({0.3, 0.4, 2.6, 1.7, 1.2, 0.9, 2.1, 1.4, 0.6, 0.2, 1.9, 1.1}, at::kDouble).view({2, 3, 2});
}

TEST(BilinearTest, APixelsMiddleHasItsValueAndBetweenLiesTheMean) {
  const at::Tensor at_pixels = at::tensor({2.0, 1.0, 2.5, 1.0, 2.5, 0.5, 3.0, 2.0}, at::kDouble).view({1, 4, 2});
  const at::Tensor one = map().narrow(0, 1, 1);
  const at::Tensor found = sample_bilinear(one, at_pixels)[0];  // [points, channels]
  const auto value = [&](int64_t row, int64_t column) { return one[0].select(1, row).select(1, column); };
  EXPECT_TRUE(at::allclose(found[0], value(1, 2)));
  EXPECT_TRUE(at::allclose(found[1], (value(1, 2) + value(1, 3)) / 2));
  EXPECT_TRUE(at::allclose(found[2], (value(0, 2) + value(0, 3) + value(1, 2) + value(1, 3)) / 4));
  EXPECT_TRUE(at::allclose(found[3], value(2, 3)));
}

TEST(BilinearTest, EveryImageOfABatchIsItsOwn) {
  const at::Tensor both = sample_bilinear(map(), points());
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(both.narrow(0, i, 1).equal(sample_bilinear(map().narrow(0, i, 1), points().narrow(0, i, 1))));
  }
}

TEST(BilinearTest, BeyondTheEdgeIsTheEdgeAndWhatIsNoNumberLeavesNoMap) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  const at::Tensor one = map().narrow(0, 0, 1);
  const at::Tensor found =
      sample_bilinear(one, at::tensor({-5.0, 1.0, far, far, nan, 1.0}, at::kDouble).view({1, 3, 2}))[0];
  EXPECT_TRUE(found[0].equal(one[0].select(1, 1).select(1, 0)));
  EXPECT_TRUE(found[1].equal(one[0].select(1, 2).select(1, 3)));
  EXPECT_TRUE(found[2].equal(one[0].select(1, 1).select(1, 0)));
}

// Against differences of the function itself, of every number that goes in.
TEST(BilinearTest, TheGradientIsThatOfDifferences) {
  const at::Tensor direction = at::arange(12, at::kDouble).mul(1.3).cos().view({2, 3, 2});
  const auto value = [&](const at::Tensor& from, const at::Tensor& places) {
    return (sample_bilinear(from, places) * direction).sum();
  };
  const auto check = [&](const at::Tensor& input, const auto& of) {
    const at::Tensor leaf = input.clone().requires_grad_(true);
    of(leaf).backward();
    constexpr double kStep = 1e-6;
    for (int64_t i = 0; i < input.numel(); ++i) {
      const at::Tensor less = input.clone(), more = input.clone();
      less.view(-1)[i] -= kStep;
      more.view(-1)[i] += kStep;
      const double difference = (of(more) - of(less)).template item<double>() / (2 * kStep);
      EXPECT_NEAR(leaf.grad().view(-1)[i].template item<double>(), difference, 1e-8) << "number " << i;
    }
  };
  check(map(), [&](const at::Tensor& from) { return value(from, points()); });
  check(points(), [&](const at::Tensor& places) { return value(map(), places); });
}

}  // namespace
}  // namespace lockstep::model
