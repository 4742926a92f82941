// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/tune/parzen.h"

namespace lockstep::tune {
namespace {

constexpr int64_t kCandidates = 24;
constexpr int64_t kMostGood = 25;

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

// The values of the trials that have all of these parameters: by parameter, in the order of the trials.
std::vector<std::vector<double>> observed_values(const std::vector<const Parameter*>& parameters,
                                                 const std::vector<const Trial*>& trials) {
  std::vector<size_t> by_name(parameters.size());  // as the values of a trial are sorted: one pass finds all
  std::iota(by_name.begin(), by_name.end(), size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](size_t a, size_t b) { return parameters[a]->name < parameters[b]->name; });
  std::vector<std::vector<double>> columns(parameters.size());
  for (auto& column : columns) column.reserve(trials.size());
  std::vector<double> row(parameters.size());
  for (const Trial* trial : trials) {
    auto value = trial->values.begin();
    const bool has_all = std::all_of(by_name.begin(), by_name.end(), [&](size_t i) {
      while (value != trial->values.end() && value->first < parameters[i]->name) ++value;
      if (value == trial->values.end() || value->first != parameters[i]->name) return false;
      row[i] = value->second;
      return parameters[i]->distribution.contains(row[i]);
    });
    if (!has_all) continue;
    for (size_t i = 0; i < row.size(); ++i) columns[i].push_back(row[i]);
  }
  return columns;
}

// A mixture of products of kernels.
class Mixture {
 public:
  Mixture(const std::vector<const Parameter*>& parameters, const std::vector<const Trial*>& trials) {
    const auto observed = observed_values(parameters, trials);
    weights_ = kernel_weights(observed.front().size());
    log_weights_.reserve(weights_.size());
    for (const double weight : weights_) log_weights_.push_back(std::log(weight));
    kernels_.reserve(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) kernels_.emplace_back(parameters[i]->distribution, observed[i]);
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
    constexpr double kNothing = -60;  // e^-60 of ten thousand kernels leaves no trace in a sum of 1 and more
    for (const double sum : sums) {
      if (sum - most > kNothing) total += std::exp(sum - most);
    }
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

Groups split_trials(const std::vector<Trial>& trials, bool maximize) {
  const double sign = maximize ? -1 : 1;
  struct Ranked {
    const Trial* trial;
    int group;  // complete, pruned or paused, infeasible
    double first;
    double second;
  };
  std::vector<Ranked> ranked;
  Groups groups;
  for (const auto& trial : trials) {
    const bool judged = trial.is_judged();
    if (trial.state == TrialState::running && !judged) groups.bad.push_back(&trial);
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
  const auto share = static_cast<size_t>(std::ceil(0.1 * static_cast<double>(ranked.size())));
  const auto good = static_cast<ptrdiff_t>(std::min(share, static_cast<size_t>(kMostGood)));
  std::partial_sort(ranked.begin(), ranked.begin() + good, ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.group, a.first, a.second, a.trial->number) <
           std::tie(b.group, b.first, b.second, b.trial->number);
  });
  groups.bad.reserve(groups.bad.size() + ranked.size());
  for (auto one = ranked.begin(); one != ranked.end(); ++one) {
    (one - ranked.begin() < good ? groups.good : groups.bad).push_back(one->trial);
  }
  // Trials lie in one array, in the order of their numbers.
  std::sort(groups.good.begin(), groups.good.end());
  std::sort(groups.bad.begin(), groups.bad.end());
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
