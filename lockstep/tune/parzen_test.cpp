// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/parzen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::tune {
namespace {

// By sorting, as it is said.
std::vector<double> sorted_widths(const std::vector<double>& centres, double low, double high) {
  const size_t n = centres.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return centres[a] < centres[b]; });
  std::vector<double> widths(n);
  const double least = (high - low) / std::min(100.0, static_cast<double>(n) + 2);
  for (size_t i = 0; i < n; ++i) {
    const double mine = centres[order[i]];
    const double left = mine - (i > 0 ? centres[order[i - 1]] : low);
    const double right = (i + 1 < n ? centres[order[i + 1]] : high) - mine;
    const double width = n < 2 ? std::max(left, right) : i == 0 ? right : i + 1 == n ? left : std::max(left, right);
    widths[order[i]] = std::clamp(width, least, high - low);
  }
  return widths;
}

TEST(KernelsTest, HasTheWidthsOfSortedNeighbours) {
  base::Random random(1, 0, 0);
  for (const size_t n : {1, 2, 3, 10, 97, 98, 99, 1000}) {
    for (const double spread : {1.0, 0.03}) {  // all over the range, or crowded
      Distribution range;
      range.low = -2;
      range.high = 3;
      std::vector<double> observed;
      for (size_t i = 0; i < n; ++i) observed.push_back(-2 + 5 * spread * std::floor(100 * random.uniform()) / 100);
      std::vector<double> found = Kernels(range, observed).widths();
      EXPECT_EQ(found.back(), 5);  // the prior
      found.pop_back();
      EXPECT_EQ(found, sorted_widths(observed, -2, 3)) << n << " values over " << spread;
    }
  }
}

// Of steps the masses of all cells come to 1, of each kernel; of a range the integral does.
TEST(KernelsTest, ComesToOne) {
  Distribution steps;
  steps.kind = Distribution::Kind::integer;
  steps.low = 1;
  steps.high = 12;
  steps.step = 1;
  const Kernels kernels(steps, {1, 4, 4, 11});
  std::vector<double> total(5, 0.0);
  for (int64_t value = 1; value <= 12; ++value) {
    std::vector<double> sums(5, 0.0);
    kernels.add_log_density(static_cast<double>(value), sums);
    for (size_t i = 0; i < sums.size(); ++i) total[i] += std::exp(sums[i]);
  }
  for (const double sum : total) EXPECT_NEAR(sum, 1, 2e-3);  // the middle of a narrow cell stands for all of it
  Distribution range;
  range.high = 1;
  const Kernels smooth(range, {0.01, 0.5, 0.9});
  std::vector<double> integral(4, 0.0);
  for (int64_t i = 0; i < 1000; ++i) {
    std::vector<double> sums(4, 0.0);
    smooth.add_log_density((static_cast<double>(i) + 0.5) / 1000, sums);
    for (size_t k = 0; k < sums.size(); ++k) integral[k] += std::exp(sums[k]) / 1000;
  }
  for (const double sum : integral) EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(NormalTest, InvertsTheNormalDistribution) {
  for (const double p : {1e-12, 1e-3, 0.02, 0.3, 0.5, 0.9, 0.999})
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-9);
  EXPECT_NEAR(normal_quantile(0.995), 2.5758293035489004, 1e-9);
}

}  // namespace
}  // namespace lockstep::tune
