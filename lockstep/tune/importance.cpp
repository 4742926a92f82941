// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/importance.h"

#include <algorithm>
#include <cmath>

namespace lockstep::tune {
namespace {

constexpr size_t kLeastTrials = 10;
constexpr int64_t kCells = 50;

// The density over cells of the unit interval, with one uniform observation added.
std::vector<double> cell_density(const std::vector<double>& units, int64_t cells, bool smooth) {
  std::vector<double> density(static_cast<size_t>(cells), 1.0 / static_cast<double>(cells));
  const auto n = static_cast<double>(units.size());
  double mean = 0;
  for (const double unit : units) mean += unit / n;
  double variance = 0;
  for (const double unit : units) variance += (unit - mean) * (unit - mean) / n;
  const double width = std::max(1.06 * std::sqrt(variance) * std::pow(n, -0.2), 0.5 / static_cast<double>(cells));
  for (const double unit : units) {
    if (!smooth) {
      density[std::min(density.size() - 1, static_cast<size_t>(unit * static_cast<double>(cells)))] += 1;
      continue;
    }
    std::vector<double> kernel;
    double sum = 0;
    for (int64_t cell = 0; cell < cells; ++cell) {
      const double z = ((static_cast<double>(cell) + 0.5) / static_cast<double>(cells) - unit) / width;
      kernel.push_back(std::exp(-0.5 * z * z));
      sum += kernel.back();
    }
    for (size_t cell = 0; cell < kernel.size(); ++cell) density[cell] += sum > 0 ? kernel[cell] / sum : 0;
  }
  for (double& one : density) one /= n + 1;
  return density;
}

double divergence(const Parameter& parameter, const std::vector<const Trial*>& ranked) {
  std::vector<double> all;
  for (const Trial* trial : ranked) {
    const auto value = trial->values.find(parameter.name);
    if (value == trial->values.end() || !parameter.distribution.contains(value->second)) continue;
    all.push_back(parameter.distribution.unit_of(value->second));
  }
  if (all.size() < kLeastTrials) return 0;
  const auto best = static_cast<size_t>(std::max(2.0, std::ceil(0.1 * static_cast<double>(all.size()))));
  const std::vector<double> top(all.begin(), all.begin() + static_cast<long>(best));
  const bool choice = parameter.distribution.kind == Distribution::Kind::choice;
  const int64_t own = parameter.distribution.cells();
  const int64_t cells = own > 0 ? std::min(own, kCells) : kCells;
  const auto of_all = cell_density(all, cells, !choice);
  const auto of_top = cell_density(top, cells, !choice);
  double sum = 0;
  for (size_t cell = 0; cell < of_all.size(); ++cell) {
    const double ratio = of_top[cell] / of_all[cell] - 1;
    sum += of_all[cell] * ratio * ratio;
  }
  return sum;
}

}  // namespace

std::vector<std::pair<std::string, double>> importances(const Space& space, const std::vector<Trial>& trials,
                                                        bool maximize) {
  std::vector<const Trial*> ranked;
  for (const auto& trial : trials) {
    if (trial.state == TrialState::complete && trial.objective && std::isfinite(*trial.objective))
      ranked.push_back(&trial);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Trial* a, const Trial* b) {
    return maximize ? *a->objective > *b->objective : *a->objective < *b->objective;
  });
  std::vector<std::pair<std::string, double>> shares;
  if (ranked.size() < kLeastTrials) return shares;
  double sum = 0;
  for (const auto& parameter : space) {
    shares.emplace_back(parameter.name, divergence(parameter, ranked));
    sum += shares.back().second;
  }
  for (auto& one : shares) one.second /= sum > 0 ? sum : 1;
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

}  // namespace lockstep::tune
