// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"

namespace lockstep::tune {
namespace {

constexpr int64_t kCandidates = 24;
constexpr int64_t kMostGood = 25;
const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// Weights in the order of time: old trials of a large group count less.
std::vector<double> kernel_weights(size_t count) {
  std::vector<double> weights(count, 1.0);
  if (count >= static_cast<size_t>(kMostGood)) {
    const size_t ramp = count - static_cast<size_t>(kMostGood);
    const double first = 1 / static_cast<double>(count);
    for (size_t i = 0; i < ramp; ++i) {
      weights[i] = ramp == 1 ? first : first + (1 - first) * static_cast<double>(i) / static_cast<double>(ramp - 1);
    }
  }
  weights.push_back(1);  // the prior
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The kernels of one group along one parameter.
class Kernels {
 public:
  Kernels(const Distribution& distribution, const std::vector<double>& observed) : distribution_(distribution) {
    count_ = observed.size() + 1;
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
    log_mass_.reserve(count_);
    log_peak_.reserve(count_);
    for (size_t i = 0; i < count_; ++i) {
      const double mass =
          normal_cdf((high_ - centres_[i]) / widths_[i]) - normal_cdf((low_ - centres_[i]) / widths_[i]);
      log_mass_.push_back(std::log(mass));
      log_peak_.push_back(-kLogRootTwoPi - std::log(widths_[i]) - log_mass_.back());
    }
  }

  double draw(size_t kernel, base::Random& random) const {
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

  // Adds the logarithm of each kernel's density (of steps: its mass) at the value.
  void add_log_density(double value, std::vector<double>& sums) const {
    if (distribution_.kind == Distribution::Kind::choice) return add_choice(value, sums);
    const double half = distribution_.step / 2;
    const double at = warp(value);
    const double from = half > 0 ? warp(value - half) : 0;
    const double to = half > 0 ? warp(value + half) : 0;
    const double log_cell = half > 0 ? std::log(to - from) : 0;
    for (size_t i = 0; i < count_; ++i) {  // for each candidate and trial: no logarithm that was taken before
      const double z = (at - centres_[i]) / widths_[i];
      double density = log_peak_[i] - 0.5 * z * z;
      if (half > 0) {
        // The density in the middle of a cell that is narrow beside the kernel, else the mass of the cell.
        const double width = (to - from) / widths_[i];
        density = width < 0.1 ? density + log_cell
                              : std::log(std::max(1e-300, normal_cdf((to - centres_[i]) / widths_[i]) -
                                                              normal_cdf((from - centres_[i]) / widths_[i]))) -
                                    log_mass_[i];
      }
      sums[i] += density;
    }
  }

 private:
  double warp(double value) const { return distribution_.log ? std::log(value) : value; }

  void add_choice(double value, std::vector<double>& sums) const {
    const double other = 1 / static_cast<double>(count_);
    const double choices = static_cast<double>(distribution_.choices.size()) * other;
    const double own = std::log((1 + other) / (choices + 1));
    const double another = std::log(other / (choices + 1));
    for (size_t i = 0; i < count_; ++i) {
      sums[i] += centres_[i] < 0 ? std::log(other / choices) : centres_[i] == value ? own : another;
    }
  }

  // The larger gap to a neighbour; of the outermost two the inner one.
  void set_widths() {
    const size_t n = centres_.size();
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return centres_[a] < centres_[b]; });
    widths_.assign(n, high_ - low_);
    const double least = (high_ - low_) / std::min(100.0, static_cast<double>(n) + 2);
    for (size_t i = 0; i < n; ++i) {
      const double left = i > 0 ? centres_[order[i - 1]] : low_;
      const double right = i + 1 < n ? centres_[order[i + 1]] : high_;
      const double mine = centres_[order[i]];
      double width = std::max(mine - left, right - mine);
      if (n >= 2 && i == 0) width = right - mine;
      if (n >= 2 && i + 1 == n) width = mine - left;
      widths_[order[i]] = std::clamp(width, least, high_ - low_);
    }
  }

  const Distribution& distribution_;
  size_t count_ = 0;  // with the prior, which is the last
  double low_ = 0;
  double high_ = 0;
  std::vector<double> centres_;  // of a choice: its index; -1: the prior
  std::vector<double> widths_;
  std::vector<double> log_mass_;  // inside the range
  std::vector<double> log_peak_;  // of the density, at the centre
};

// A mixture of products of kernels.
class Mixture {
 public:
  Mixture(const std::vector<const Parameter*>& parameters, const std::vector<const Trial*>& trials) {
    std::vector<const Trial*> whole;
    for (const Trial* trial : trials) {
      const bool has_all = std::all_of(parameters.begin(), parameters.end(), [&](const Parameter* parameter) {
        const auto value = trial->values.find(parameter->name);
        return value != trial->values.end() && parameter->distribution.contains(value->second);
      });
      if (has_all) whole.push_back(trial);
    }
    weights_ = kernel_weights(whole.size());
    for (const double weight : weights_) log_weights_.push_back(std::log(weight));
    for (const Parameter* parameter : parameters) {
      std::vector<double> observed;
      observed.reserve(whole.size());
      for (const Trial* trial : whole) observed.push_back(trial->values.at(parameter->name));
      kernels_.emplace_back(parameter->distribution, observed);
    }
  }

  std::vector<double> draw(base::Random& random) const {
    double rest = random.uniform();
    size_t kernel = 0;
    while (kernel + 1 < weights_.size() && rest >= weights_[kernel]) rest -= weights_[kernel++];
    std::vector<double> point;
    point.reserve(kernels_.size());
    for (const auto& one : kernels_) point.push_back(one.draw(kernel, random));
    return point;
  }

  double log_density(const std::vector<double>& point) const {
    std::vector<double> sums = log_weights_;
    for (size_t i = 0; i < kernels_.size(); ++i) kernels_[i].add_log_density(point[i], sums);
    const double most = *std::max_element(sums.begin(), sums.end());
    double total = 0;
    for (const double sum : sums) total += std::exp(sum - most);
    return most + std::log(total);
  }

 private:
  std::vector<double> weights_;
  std::vector<double> log_weights_;
  std::vector<Kernels> kernels_;
};

void draw_jointly(const std::vector<const Parameter*>& parameters, const Groups& groups, base::Random& random,
                  Values& values) {
  if (parameters.empty()) return;
  const Mixture good(parameters, groups.good);
  const Mixture bad(parameters, groups.bad);
  std::vector<double> best;
  double best_ratio = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < kCandidates; ++i) {
    std::vector<double> point = good.draw(random);
    const double ratio = good.log_density(point) - bad.log_density(point);
    if (best.empty() || ratio > best_ratio) {
      best_ratio = ratio;
      best = std::move(point);
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i) values[parameters[i]->name] = best[i];
}

}  // namespace

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

Groups split_trials(const std::vector<Trial>& trials, bool maximize) {
  const double sign = maximize ? -1 : 1;
  struct Ranked {
    const Trial* trial;
    int group;  // complete, pruned, infeasible
    double first;
    double second;
  };
  std::vector<Ranked> ranked;
  Groups groups;
  for (const auto& trial : trials) {
    const bool judged = trial.state == TrialState::complete || trial.state == TrialState::pruned;
    if (trial.state == TrialState::running) groups.bad.push_back(&trial);
    if (!judged) continue;
    if (const double violation = trial.violation(); violation > 0) {
      ranked.push_back({&trial, 2, violation, 0});
    } else if (trial.state == TrialState::complete) {
      const double value = trial.objective.value_or(std::numeric_limits<double>::quiet_NaN());
      ranked.push_back({&trial, 0, std::isnan(value) ? std::numeric_limits<double>::infinity() : sign * value, 0});
    } else if (trial.intermediate.empty()) {
      ranked.push_back({&trial, 1, 1, 0});
    } else {
      const auto& [step, value] = *trial.intermediate.rbegin();
      ranked.push_back({&trial, 1, -static_cast<double>(step),
                        std::isnan(value) ? std::numeric_limits<double>::infinity() : sign * value});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.group, a.first, a.second) < std::tie(b.group, b.first, b.second);
  });
  const auto share = static_cast<size_t>(std::ceil(0.1 * static_cast<double>(ranked.size())));
  const size_t good = std::min(share, static_cast<size_t>(kMostGood));
  for (size_t i = 0; i < ranked.size(); ++i) (i < good ? groups.good : groups.bad).push_back(ranked[i].trial);
  const auto by_number = [](const Trial* a, const Trial* b) { return a->number < b->number; };
  std::sort(groups.good.begin(), groups.good.end(), by_number);
  std::sort(groups.bad.begin(), groups.bad.end(), by_number);
  return groups;
}

Values draw_tpe(const Space& space, const std::vector<Trial>& trials, bool maximize, uint64_t seed, int64_t number) {
  const Groups groups = split_trials(trials, maximize);
  base::ensure(!groups.good.empty(), "TPE has trials to go by");
  base::Random random(base::derive_seed(seed, "tune.tpe"), 0, static_cast<uint64_t>(number));
  std::vector<const Parameter*> always;
  for (const auto& parameter : space) {
    if (parameter.when.empty()) always.push_back(&parameter);
  }
  Values values;
  draw_jointly(always, groups, random, values);
  for (const auto& parameter : space) {
    if (!parameter.when.empty() && is_active(parameter, space, values)) {
      draw_jointly({&parameter}, groups, random, values);
    }
  }
  return values;
}

}  // namespace lockstep::tune
