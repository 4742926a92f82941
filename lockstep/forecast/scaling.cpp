// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/scaling.h"

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

constexpr double kSeconds = 3600;  // of an hour

double typical_miss(const std::vector<double>& factors) {
  double squares = 0;
  for (const double factor : factors) squares += std::log(factor) * std::log(factor);
  return std::exp(std::sqrt(squares / static_cast<double>(factors.size())));
}

// Least squares of log(rate of a GPU) over log2(GPUs).
void fit_doubling(const std::vector<ScalingRow>& rows, ReadingFit& fit) {
  const auto n = static_cast<double>(rows.size());
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double x = std::log2(static_cast<double>(rows[i].gpus));
    const double y = std::log(fit.row_rates[i]);
    sum_x += x, sum_y += y, sum_xx += x * x, sum_xy += x * y;
  }
  const double span = n * sum_xx - sum_x * sum_x;
  const double slope = span > 0 ? (n * sum_xy - sum_x * sum_y) / span : 0;
  fit.kept_per_doubling = std::exp(slope);
  fit.rate_of_one = std::exp((sum_y - slope * sum_x) / n);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double doublings = std::log2(static_cast<double>(rows[i].gpus));
    fit.doubling_factors.push_back(fit.row_rates[i] / (fit.rate_of_one * std::pow(fit.kept_per_doubling, doublings)));
  }
  fit.doubling_spread = typical_miss(fit.doubling_factors);
}

}  // namespace

double scaling_efficiency(double rate, int64_t gpus, double base_rate, int64_t base_gpus) {
  base::ensure(base_rate > 0 && gpus > 0 && base_gpus > 0, "an efficiency has a base");
  return rate / base_rate * static_cast<double>(base_gpus) / static_cast<double>(gpus);
}

double rate_from_steps(const ScalingRow& row) {
  base::ensure(row.steps > 0 && row.hours() > 0, "a rate comes from steps and hours");
  return row.steps * row.batch * static_cast<double>(row.gpus) / (row.hours() * kSeconds);
}

double remaining_time(double share, double speed_up) {
  base::ensure(share >= 0 && share <= 1 && speed_up > 0, "a share of the time becomes faster");
  return share / speed_up + (1 - share);
}

double samples_shown(const ScalingRow& row, Reading reading, double epochs) {
  if (reading == Reading::global_batch) return epochs * row.samples();
  const double each = reading == Reading::steps_per_epoch ? static_cast<double>(row.gpus) : 1;
  return epochs * row.batch * each;
}

ReadingFit fit_reading(const std::vector<ScalingRow>& rows, Reading reading, double epochs) {
  base::ensure(!rows.empty(), "a fit has rows");
  ReadingFit fit;
  fit.reading = reading;
  double logarithms = 0;
  for (const auto& row : rows) {
    const double rate = samples_shown(row, reading, epochs) / (row.hours() * kSeconds) / static_cast<double>(row.gpus);
    base::ensure(rate > 0, "a row has hours and samples");
    fit.row_rates.push_back(rate);
    logarithms += std::log(rate);
  }
  fit.rate_per_gpu = std::exp(logarithms / static_cast<double>(rows.size()));
  for (const double rate : fit.row_rates) fit.factors.push_back(rate / fit.rate_per_gpu);
  fit.spread = typical_miss(fit.factors);
  fit_doubling(rows, fit);
  return fit;
}

}  // namespace lockstep::forecast
