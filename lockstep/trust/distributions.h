// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::trust {

struct Interval {
  double low = 0;
  double high = 0;

  bool contains(double value) const { return low <= value && value <= high; }
};

double normal_cdf(double x);
double normal_quantile(double share);  // REQUIRES: 0 < share < 1

// The regularised incomplete beta function I_x(a, b), and its inverse in x.
double beta_cdf(double x, double a, double b);
double beta_quantile(double share, double a, double b);

// P(at most `count` of `trials` succeed).
double binomial_cdf(int64_t count, int64_t trials, double probability);
// Of a share, exact (Clopper and Pearson 1934).
Interval binomial_interval(int64_t count, int64_t trials, double level);
// The middle `level` of how many of `trials` succeed when the probability is Beta(a, b): smallest and largest count.
Interval beta_binomial_interval(int64_t trials, double a, double b, double level);

}  // namespace lockstep::trust
