// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/sobol.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep::tune {
namespace {

// scipy.stats.qmc.Sobol(64, scramble=False).random(1024)[777]
TEST(SobolTest, GivesThePointsOfSciPy) {
  const auto point = Sobol(64, 0).point(777);
  const std::vector<std::pair<size_t, double>> expected{{0, 0.6923828125},  {1, 0.9365234375},  {5, 0.3564453125},
                                                        {20, 0.2373046875}, {40, 0.7216796875}, {63, 0.4267578125}};
  for (const auto& [dimension, value] : expected) EXPECT_DOUBLE_EQ(point[dimension], value) << dimension;
}

TEST(SobolTest, FillsEveryCellWhateverTheShift) {
  const Sobol sobol(3, 5);
  std::set<int> cells;
  for (uint64_t i = 0; i < 8; ++i) {
    const auto point = sobol.point(i);
    cells.insert((point[0] < 0.5 ? 0 : 1) + (point[1] < 0.5 ? 0 : 2) + (point[2] < 0.5 ? 0 : 4));
  }
  EXPECT_GE(cells.size(), 4U);
  EXPECT_NE(sobol.point(1), Sobol(3, 6).point(1));
}

}  // namespace
}  // namespace lockstep::tune
