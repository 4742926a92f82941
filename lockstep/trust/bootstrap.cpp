// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::trust {
namespace {

struct Unit {  // that is drawn as a whole
  double sum = 0;
  double rows = 0;
};

std::vector<Unit> units_of(std::span<const double> values, std::span<const int64_t> groups) {
  std::map<int64_t, Unit> by_group;
  for (size_t i = 0; i < values.size(); ++i) {
    Unit& unit = by_group[groups.empty() ? static_cast<int64_t>(i) : groups[i]];
    unit.sum += values[i];
    ++unit.rows;
  }
  std::vector<Unit> units;
  units.reserve(by_group.size());
  for (const auto& [group, unit] : by_group) units.push_back(unit);
  return units;
}

// Linear between the order statistics, as numpy.percentile.
double quantile_of(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double acceleration(std::span<const double> left_out) {
  double mean = 0, squares = 0, cubes = 0;
  for (const double value : left_out) mean += value / static_cast<double>(left_out.size());
  for (const double value : left_out) {
    squares += std::pow(mean - value, 2);
    cubes += std::pow(mean - value, 3);
  }
  return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

}  // namespace

Interval bca_interval(double observed, std::vector<double> resampled, std::span<const double> left_out, double level) {
  std::sort(resampled.begin(), resampled.end());
  const auto below = std::lower_bound(resampled.begin(), resampled.end(), observed) - resampled.begin();
  const auto up_to = std::upper_bound(resampled.begin(), resampled.end(), observed) - resampled.begin();
  const double share = static_cast<double>(below + up_to) / (2 * static_cast<double>(resampled.size()));
  const double edge = 0.5 / static_cast<double>(resampled.size());
  const double bias = normal_quantile(std::clamp(share, edge, 1 - edge));
  const double a = acceleration(left_out);
  const auto end = [&](double tail) {
    const double z = bias + normal_quantile(tail);
    return quantile_of(resampled, normal_cdf(bias + z / (1 - a * z)));
  };
  return {end((1 - level) / 2), end((1 + level) / 2)};
}

Interval bootstrap_mean(std::span<const double> values, std::span<const int64_t> groups,
                        const BootstrapOptions& options) {
  base::ensure(!values.empty(), "there are values");
  const std::vector<Unit> units = units_of(values, groups);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most || units.size() < 2) {
    const auto rows = static_cast<int64_t>(values.size());
    const bool is_share = *least == *most && (*least == 0 || *least == 1);
    if (is_share) return binomial_interval(*least == 1 ? rows : 0, rows, options.level);
    return {*least, *most};
  }
  Unit all;
  for (const auto& unit : units) all.sum += unit.sum, all.rows += unit.rows;
  std::vector<double> left_out, resampled;
  left_out.reserve(units.size());
  for (const auto& unit : units) left_out.push_back((all.sum - unit.sum) / (all.rows - unit.rows));
  base::Random random(base::derive_seed(options.seed, "bootstrap"));
  resampled.reserve(static_cast<size_t>(options.resamples));
  for (int64_t i = 0; i < options.resamples; ++i) {
    Unit drawn;
    for (size_t k = 0; k < units.size(); ++k) {
      const Unit& unit = units[static_cast<size_t>(random.below(static_cast<int64_t>(units.size())))];
      drawn.sum += unit.sum;
      drawn.rows += unit.rows;
    }
    resampled.push_back(drawn.sum / drawn.rows);
  }
  return bca_interval(all.sum / all.rows, std::move(resampled), left_out, options.level);
}

}  // namespace lockstep::trust
