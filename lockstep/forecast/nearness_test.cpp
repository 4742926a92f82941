// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/nearness.h"

#include <gtest/gtest.h>

#include <random>

#include "lockstep/forecast/invented_device.h"

namespace lockstep::forecast {
namespace {

Operator convolution(int64_t in, int64_t out, int64_t kernel, int64_t groups) {
  return {.name = "aten::convolution",
          .kind = OperatorClass::convolution,
          .flops = 1e10,
          .bytes = 1e8,
          .shape = {32, in, 28, 28, out, kernel, kernel, 1, groups}};
}

Coordinates at(const Operator& op) {
  return coordinates_of(op, invented_rates(), Layout::channels_last);
}

TEST(NearnessTest, TellsTheKindsOfConvolutionApart) {
  EXPECT_EQ(family_of(convolution(256, 64, 1, 1)), KernelFamily::pointwise);
  EXPECT_EQ(family_of(convolution(64, 64, 3, 1)), KernelFamily::spatial);
  EXPECT_EQ(family_of(convolution(64, 64, 3, 64)), KernelFamily::depthwise);
  EXPECT_EQ(family_of(convolution(64, 64, 3, 32)), KernelFamily::grouped);
  EXPECT_EQ(family_of(convolution(3, 64, 7, 1)), KernelFamily::stem);
  EXPECT_EQ(family_of({.kind = OperatorClass::matmul}), KernelFamily::plain);
}

TEST(NearnessTest, IsZeroFromAnOperatorToItselfAndSymmetric) {
  const auto a = at(convolution(64, 64, 3, 1));
  const auto b = at(convolution(128, 64, 3, 1));
  EXPECT_EQ(distance_squared(a, a), 0);
  EXPECT_DOUBLE_EQ(distance_squared(a, b), distance_squared(b, a));
  EXPECT_GT(distance_squared(a, b), 0);
}

TEST(NearnessTest, AnotherKernelIsFartherThanAnotherWidth) {
  const auto a = at(convolution(64, 64, 3, 1));
  EXPECT_LT(distance_squared(a, at(convolution(128, 128, 3, 1))), distance_squared(a, at(convolution(64, 64, 1, 1))));
}

TEST(NearnessTest, HalfPrecisionsStandCloserToEachOtherThanToFp32) {
  auto bf16 = convolution(64, 64, 3, 1);
  bf16.type = NumberType::bf16;
  auto fp16 = bf16;
  fp16.type = NumberType::fp16;
  auto fp32 = bf16;
  fp32.type = NumberType::fp32;
  EXPECT_LT(distance_squared(at(bf16), at(fp16)), distance_squared(at(bf16), at(fp32)));
}

TEST(NearnessTest, InterpolatesBetweenSamplesAndNeverBeyond) {
  const auto point = [](double bytes, double log_efficiency) {
    return SamplePoint{at({.name = "aten::add", .bytes = bytes}), log_efficiency};
  };
  const std::vector<SamplePoint> points = {point(1e6, -2), point(1e8, -1)};
  EXPECT_NEAR(interpolate(points, at({.name = "aten::add", .bytes = 1e6})), -2, 0.01);
  EXPECT_NEAR(interpolate(points, at({.name = "aten::add", .bytes = 1e7})), -1.5, 0.01);
  for (double bytes = 1; bytes < 1e15; bytes *= 10) {
    const double value = interpolate(points, at({.name = "aten::add", .bytes = bytes}));
    EXPECT_GE(value, -2);
    EXPECT_LE(value, -1);
  }
}

TEST(NearnessTest, TheOrderOfTheSamplesDoesNotMatter) {
  std::vector<SamplePoint> points;
  for (int i = 0; i < 20; ++i) {
    points.push_back({at({.name = "aten::add", .bytes = 1e5 * (1 + i * i)}), -0.1 * (i % 7)});
  }
  const auto where = at({.name = "aten::add", .bytes = 4e6});
  const double forwards = interpolate(points, where);
  std::reverse(points.begin(), points.end());
  EXPECT_DOUBLE_EQ(interpolate(points, where), forwards);
}

TEST(NearnessTest, SortedPointsGiveTheSameFromFewerLooks) {
  std::mt19937_64 random(5);
  const auto draw = [&] { return std::uniform_real_distribution<>(-8, 8)(random); };
  const auto place = [&] {
    Coordinates at;
    for (double& x : at.x) x = draw();
    at.name = random() % 3;
    at.family = random() % 2 == 0 ? KernelFamily::plain : KernelFamily::spatial;
    at.layout = random() % 4 == 0 ? Layout::contiguous : Layout::channels_last;
    at.type = random() % 2 == 0 ? NumberType::fp32 : NumberType::bf16;
    return at;
  };
  std::vector<SamplePoint> points;
  for (int i = 0; i < 300; ++i) points.push_back({place(), draw()});
  const SortedPoints sorted(points);
  for (int i = 0; i < 200; ++i) {
    const Coordinates at = place();
    EXPECT_DOUBLE_EQ(sorted.interpolate(at), interpolate(points, at));
  }
}

}  // namespace
}  // namespace lockstep::forecast
