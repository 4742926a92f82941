// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/paste_mask.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace lockstep::task {
namespace {

using Runs = std::vector<int64_t>;

int64_t area(const Runs& runs) {
  int64_t inside = 0;
  for (size_t i = 1; i < runs.size(); i += 2) inside += runs[i];
  return inside;
}

// tests/oracles/instances.py holds it against torchvision on hundreds of cases.
TEST(PasteMask, AFullMaskFillsItsBoxAsTorchvisionRoundsIt) {
  const std::vector<float> full(28 * 28, 1);
  const Runs runs = paste_mask(full, 28, {10, 20, 30, 60}, 100, 80);
  EXPECT_EQ(std::accumulate(runs.begin(), runs.end(), int64_t{0}), 100 * 80);
  EXPECT_EQ(runs.front(), 10 * 80 + 19) << "down the columns: ten of them, and nineteen rows";
  EXPECT_EQ(runs[1], 42);
  EXPECT_EQ(area(runs), 20 * 42);
}

TEST(PasteMask, IsCutOffAtTheBorder) {
  const std::vector<float> full(28 * 28, 1);
  EXPECT_EQ(paste_mask(full, 28, {-50, -50, 200, 200}, 30, 20), (Runs{0, 30 * 20}));
  EXPECT_EQ(paste_mask(full, 28, {40, 40, 60, 60}, 30, 20), (Runs{30 * 20}));
}

TEST(PasteMask, WhatIsNoBoxHasNoPixel) {
  const std::vector<float> full(28 * 28, 1);
  const float nan = std::nanf("");
  EXPECT_EQ(paste_mask(full, 28, {nan, 0, 10, 10}, 30, 20), (Runs{30 * 20}));
  EXPECT_EQ(paste_mask(full, 28, {0, 0, INFINITY, 10}, 30, 20), (Runs{30 * 20}));
  EXPECT_EQ(paste_mask(full, 28, {20, 0, 10, 10}, 30, 20), (Runs{30 * 20}));
  EXPECT_EQ(paste_mask(std::vector<float>(28 * 28, nan), 28, {0, 0, 10, 10}, 30, 20), (Runs{30 * 20}));
}

TEST(PasteMask, TakesRunsAloneOfAnImageOfAnySize) {
  std::vector<float> half(28 * 28, 0);
  std::fill_n(half.begin(), 28 * 14, 1.0F);  // the upper half
  const int64_t side = 50000;
  const Runs runs = paste_mask(half, 28, {0, 0, 50000, 50000}, side, side);
  EXPECT_NEAR(static_cast<double>(area(runs)) / 2.5e9, 0.5, 0.01);
  EXPECT_LE(runs.size(), 2 * 50000U + 1);
}

}  // namespace
}  // namespace lockstep::task
