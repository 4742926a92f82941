// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/temperature.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::trust {
namespace {

struct Slope {
  double first = 0;   // of the mean negative log-likelihood by 1/T: E_p[z] - z_y
  double second = 0;  // Var_p[z], never negative: it is convex in 1/T
};

Slope slope_at(const ClassRows& rows, double inverse) {
  Slope slope;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto logits = rows.row(i);
    const auto shares = softmax(logits, 1 / inverse);
    const double right = logits[static_cast<size_t>(rows.labels[static_cast<size_t>(i)])];
    double mean = 0, square = 0;  // of z - z_y: large logits do not cancel
    for (size_t k = 0; k < shares.size(); ++k) {
      const double value = logits[k] - right;
      mean += shares[k] * value;
      square += shares[k] * value * value;
    }
    slope.first += mean;
    slope.second += square - mean * mean;
  }
  slope.first /= static_cast<double>(rows.size());
  slope.second /= static_cast<double>(rows.size());
  return slope;
}

}  // namespace

double fit_temperature(const ClassRows& rows) {
  base::ensure(rows.size() > 0, "there are rows");
  double low = 1 / kMostTemperature, high = 1 / kLeastTemperature;
  if (slope_at(rows, low).first >= 0) return kMostTemperature;
  if (slope_at(rows, high).first <= 0) return kLeastTemperature;
  double inverse = 1;
  for (int step = 0; step < 100; ++step) {
    const Slope slope = slope_at(rows, inverse);
    (slope.first < 0 ? low : high) = inverse;
    double next = slope.second > 0 ? inverse - slope.first / slope.second : low - 1;
    if (next <= low || next >= high) next = (low + high) / 2;  // Newton left the bracket
    const double moved = std::abs(next - inverse);
    inverse = next;
    if (moved < 1e-12 * inverse) break;
  }
  return 1 / inverse;
}

}  // namespace lockstep::trust
