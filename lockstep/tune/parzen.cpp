// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/parzen.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

namespace lockstep::tune {
namespace {

const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);
constexpr double kFar = 9;  // standard deviations, beyond which nothing of a double is left

// The smallest and the largest of the values in a cell, by index; of equal ones the first and the last.
struct Cell {
  size_t first = 0;
  size_t last = 0;
  bool used = false;
};

}  // namespace

Kernels::Kernels(const Distribution& distribution, const std::vector<double>& observed)
    : distribution_(distribution), count_(observed.size() + 1) {
  if (distribution.kind == Distribution::Kind::choice) {
    centres_ = observed;
    centres_.push_back(-1);
    return;
  }
  const double half = distribution.step / 2;
  low_ = warp(distribution.low - half);
  high_ = warp(distribution.high + half);
  centres_.reserve(count_);
  for (const double value : observed) centres_.push_back(warp(value));
  set_widths();
  centres_.push_back((low_ + high_) / 2);
  widths_.push_back(high_ - low_);
  set_peaks();
  if (half > 0) find_kinds();
}

double Kernels::warp(double value) const {
  return distribution_.log ? std::log(value) : value;
}

// Without sorting, since all but a few are at the least width when there are thousands: a wider gap never lies inside a
// cell of half that width, so that only the outermost values of a cell can have one.
void Kernels::set_widths() {
  const size_t n = centres_.size();
  const double range = high_ - low_;
  const double parts = std::min(100.0, static_cast<double>(n) + 2);
  const double least = range / parts;
  widths_.assign(n, least);
  widths_.reserve(n + 1);
  std::vector<Cell> cells(static_cast<size_t>(2 * parts));
  const double scale = static_cast<double>(cells.size()) / range;
  for (size_t i = 0; i < n; ++i) {
    const double at = std::clamp((centres_[i] - low_) * scale, 0.0, static_cast<double>(cells.size() - 1));
    Cell& cell = cells[static_cast<size_t>(at)];
    if (!cell.used || centres_[i] < centres_[cell.first]) cell.first = i;
    if (!cell.used || centres_[i] >= centres_[cell.last]) cell.last = i;
    cell.used = true;
  }
  std::erase_if(cells, [](const Cell& cell) { return !cell.used; });
  const auto widen = [&](size_t i, double gap) { widths_[i] = std::clamp(std::max(widths_[i], gap), least, range); };
  for (size_t k = 0; k < cells.size(); ++k) {
    const bool is_first = k == 0;
    const bool is_last = k + 1 == cells.size();
    const double left = is_first ? low_ : centres_[cells[k - 1].last];
    const double right = is_last ? high_ : centres_[cells[k + 1].first];
    if (!is_first || n == 1) widen(cells[k].first, centres_[cells[k].first] - left);
    if (!is_last || n == 1) widen(cells[k].last, right - centres_[cells[k].last]);
  }
}

void Kernels::set_peaks() {
  scales_.reserve(count_);
  log_mass_.reserve(count_);
  log_peak_.reserve(count_);
  double width = 0;
  double log_width = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (widths_[i] != width) {
      width = widths_[i];
      log_width = std::log(width);
    }
    const double below = (low_ - centres_[i]) / width;
    const double above = (high_ - centres_[i]) / width;
    const bool is_whole = below < -kFar && above > kFar;
    scales_.push_back(1 / width);
    log_mass_.push_back(is_whole ? 0 : std::log(normal_cdf(above) - normal_cdf(below)));
    log_peak_.push_back(-kLogRootTwoPi - log_width - log_mass_.back());
  }
}

void Kernels::find_kinds() {
  std::map<std::pair<double, double>, uint32_t> known;
  kind_.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    const auto [found, is_new] = known.try_emplace({centres_[i], widths_[i]}, static_cast<uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back({centres_[i], widths_[i], log_mass_[i]});
    kind_.push_back(found->second);
  }
}

double Kernels::draw(size_t kernel, base::Random& random) const {
  if (distribution_.kind == Distribution::Kind::choice) {
    const auto choices = static_cast<int64_t>(distribution_.choices.size());
    const double other = 1 / static_cast<double>(count_);
    const double sum = static_cast<double>(choices) * other + (centres_[kernel] < 0 ? 0 : 1);
    // Either the kernel's own choice, or any.
    if (centres_[kernel] >= 0 && random.uniform() * sum < 1) return centres_[kernel];
    return static_cast<double>(random.below(choices));
  }
  const double below = normal_cdf((low_ - centres_[kernel]) / widths_[kernel]);
  const double above = normal_cdf((high_ - centres_[kernel]) / widths_[kernel]);
  const double p = std::clamp(below + random.uniform() * (above - below), 1e-300, 1 - 1e-16);
  const double value = std::clamp(centres_[kernel] + widths_[kernel] * normal_quantile(p), low_, high_);
  const double plain = distribution_.log ? std::exp(value) : value;
  return distribution_.step > 0 ? distribution_.at(distribution_.unit_of(plain))
                                : std::clamp(plain, distribution_.low, distribution_.high);
}

void Kernels::add_log_density(double value, std::vector<double>& sums) const {
  if (distribution_.kind == Distribution::Kind::choice) return add_choice(value, sums);
  if (distribution_.step > 0) return add_cells(value, sums);
  const double at = warp(value);
  for (size_t i = 0; i < count_; ++i) {  // for each candidate and trial: products and sums alone
    const double z = (at - centres_[i]) * scales_[i];
    sums[i] += log_peak_[i] - 0.5 * z * z;
  }
}

void Kernels::add_choice(double value, std::vector<double>& sums) const {
  const double other = 1 / static_cast<double>(count_);
  const double choices = static_cast<double>(distribution_.choices.size()) * other;
  const double own = std::log((1 + other) / (choices + 1));
  const double another = std::log(other / (choices + 1));
  const double any = std::log(other / choices);
  for (size_t i = 0; i < count_; ++i) sums[i] += centres_[i] < 0 ? any : centres_[i] == value ? own : another;
}

void Kernels::add_cells(double value, std::vector<double>& sums) const {
  const double half = distribution_.step / 2;
  const double at = warp(value);
  const double from = warp(value - half);
  const double to = warp(value + half);
  const double log_cell = std::log(to - from);
  std::vector<double> densities;
  densities.reserve(kinds_.size());
  for (const auto& [centre, width, log_mass] : kinds_) {
    const double z = (at - centre) / width;
    // The density in the middle of a cell that is narrow beside the kernel, else the mass of the cell.
    const bool is_narrow = (to - from) / width < 0.1;
    const double mass = is_narrow ? 0 : normal_cdf((to - centre) / width) - normal_cdf((from - centre) / width);
    const double density =
        is_narrow ? log_cell - kLogRootTwoPi - std::log(width) - 0.5 * z * z : std::log(std::max(1e-300, mass));
    densities.push_back(density - log_mass);
  }
  for (size_t i = 0; i < count_; ++i) sums[i] += densities[kind_[i]];
}

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

// P. Acklam's rational approximation, made exact by a step of Halley's method.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                          -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  const auto tail = [&](double share) {
    const double q = std::sqrt(-2 * std::log(share));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  double x = 0;
  if (p < kTail) {
    x = tail(p);
  } else if (p > 1 - kTail) {
    x = -tail(1 - p);
  } else {
    const double q = p - 0.5;
    const double r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double error = normal_cdf(x) - p;
  const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  return std::isfinite(step) ? x - step / (1 + x * step / 2) : x;
}

}  // namespace lockstep::tune
