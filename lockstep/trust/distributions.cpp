// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/distributions.h"

#include <cmath>

namespace lockstep::trust {
namespace {

double log_beta(double a, double b) {
  return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
}

// The continued fraction of I_x(a, b) by Lentz's method. It converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m < 100000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return result;
}

// Where an increasing function of [low, high] reaches `value`.
template <class Function>
double bisect(double low, double high, double value, Function function) {
  for (int step = 0; step < 200 && high - low > 1e-16 * std::abs(high); ++step) {
    const double middle = (low + high) / 2;
    (function(middle) < value ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

double normal_quantile(double share) {
  return bisect(-40, 40, share, normal_cdf);
}

double beta_cdf(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(a * std::log(x) + b * std::log1p(-x) - log_beta(a, b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double beta_quantile(double share, double a, double b) {
  return bisect(0, 1, share, [&](double x) { return beta_cdf(x, a, b); });
}

double binomial_cdf(int64_t count, int64_t trials, double probability) {
  if (count < 0) return 0;
  if (count >= trials) return 1;
  return 1 - beta_cdf(probability, static_cast<double>(count + 1), static_cast<double>(trials - count));
}

Interval binomial_interval(int64_t count, int64_t trials, double level) {
  const auto k = static_cast<double>(count), n = static_cast<double>(trials);
  const double tail = (1 - level) / 2;
  return {count == 0 ? 0 : beta_quantile(tail, k, n - k + 1),
          count == trials ? 1 : beta_quantile(1 - tail, k + 1, n - k)};
}

Interval beta_binomial_interval(int64_t trials, double a, double b, double level) {
  const double tail = (1 - level) / 2;
  const auto n = static_cast<double>(trials);
  const double scale = std::lgamma(n + 1) - log_beta(a, b);
  double below = 0;
  Interval interval{0, n};
  bool begun = false;
  for (int64_t count = 0; count <= trials; ++count) {
    const auto k = static_cast<double>(count);
    below += std::exp(scale - std::lgamma(k + 1) - std::lgamma(n - k + 1) + log_beta(k + a, n - k + b));
    if (!begun && below >= tail) interval.low = k, begun = true;
    if (below >= 1 - tail) {
      interval.high = k;
      break;
    }
  }
  return interval;
}

}  // namespace lockstep::trust
