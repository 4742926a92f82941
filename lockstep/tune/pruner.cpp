// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/pruner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::tune {
namespace {

// Smaller is better; what is no number is worst.
double rated(double value, bool maximize) {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return maximize ? -value : value;
}

// The trial's best value up to the step; none: infinity.
double best_until(const Trial& trial, int64_t step, bool maximize) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [at, value] : trial.intermediate) {
    if (at <= step) best = std::min(best, rated(value, maximize));
  }
  return best;
}

bool below_median(const spec::Study& study, const std::vector<Trial>& trials, const Trial& trial, bool maximize) {
  const int64_t step = trial.intermediate.rbegin()->first;
  std::vector<double> others;
  int64_t complete = 0;
  for (const auto& other : trials) {
    if (other.state != TrialState::complete) continue;
    ++complete;
    const auto value = other.intermediate.find(step);
    if (value != other.intermediate.end()) others.push_back(rated(value->second, maximize));
  }
  if (complete < std::max<int64_t>(1, study.startup) || others.empty()) return false;
  std::sort(others.begin(), others.end());
  const size_t middle = others.size() / 2;
  const double median = others.size() % 2 == 1 ? others[middle] : (others[middle - 1] + others[middle]) / 2;
  return best_until(trial, step, maximize) > median;
}

// What counts of a trial at a rung, as in the end: its best value, up to its first at or behind that step.
std::optional<double> value_at(const Trial& trial, int64_t rung, bool maximize) {
  const auto reached = trial.intermediate.lower_bound(rung);
  if (reached == trial.intermediate.end()) return std::nullopt;
  return best_until(trial, reached->first, maximize);
}

// The trials that may go on from a rung, best first.
std::vector<const Trial*> best_at(const spec::Study& study, const std::vector<Trial>& trials, int64_t rung,
                                  bool maximize, int64_t least) {
  std::vector<std::pair<double, const Trial*>> ranked;
  for (const auto& trial : trials) {
    const auto value = value_at(trial, rung, maximize);
    if (value && !(trial.violation() > 0)) ranked.emplace_back(*value, &trial);
  }
  const auto there = static_cast<int64_t>(ranked.size());
  const int64_t count = std::min(there, std::max(least, there / study.asha.factor));
  // Trials lie in one array, in the order of their numbers: of equal ones the earlier comes first.
  std::partial_sort(ranked.begin(), ranked.begin() + count, ranked.end());
  std::vector<const Trial*> best;
  for (int64_t i = 0; i < count; ++i) {
    const auto& [value, trial] = ranked[static_cast<size_t>(i)];
    if (std::isfinite(value)) best.push_back(trial);  // what has diverged goes nowhere
  }
  return best;
}

// The furthest rung that the trial has reached, as a step; 0: none.
int64_t furthest_rung(const spec::Study& study, const Trial& trial) {
  const int64_t reached = trial.intermediate.empty() ? 0 : trial.intermediate.rbegin()->first;
  if (reached < study.asha.first) return 0;
  int64_t rung = study.asha.first;
  while (rung <= reached / study.asha.factor) rung *= study.asha.factor;
  return rung;
}

}  // namespace

Pruning judge(const spec::Study& study, const std::vector<Trial>& trials, const Trial& trial, bool maximize,
              int64_t least) {
  Pruning pruning;
  if (study.scheduler == spec::StudyScheduler::none || trial.intermediate.empty()) return pruning;
  if (study.scheduler == spec::StudyScheduler::median) {
    pruning.stop = below_median(study, trials, trial, maximize);
    return pruning;
  }
  const int64_t reached = trial.intermediate.rbegin()->first;
  int64_t rung = study.asha.first;
  for (int64_t k = 0; rung <= reached; ++k, rung *= study.asha.factor) {
    if (trial.intermediate.lower_bound(rung)->first == reached) pruning.rungs.push_back(k);  // else: when it got there
  }
  if (pruning.rungs.empty()) return pruning;
  const auto best = best_at(study, trials, furthest_rung(study, trial), maximize, least);
  pruning.stop = std::none_of(best.begin(), best.end(), [&](const Trial* one) { return one->id == trial.id; });
  return pruning;
}

const Trial* promotable(const spec::Study& study, const std::vector<Trial>& trials, bool maximize, int64_t least) {
  if (study.scheduler != spec::StudyScheduler::asha) return nullptr;
  std::set<int64_t, std::greater<>> rungs;  // at which trials wait
  const auto waits_at = [&](const Trial& trial) {
    return trial.is_paused() && trial.worker().empty() ? furthest_rung(study, trial) : 0;
  };
  for (const auto& trial : trials) {
    if (const int64_t rung = waits_at(trial); rung > 0) rungs.insert(rung);
  }
  for (const int64_t rung : rungs) {
    for (const Trial* trial : best_at(study, trials, rung, maximize, least)) {
      if (waits_at(*trial) == rung) return trial;
    }
  }
  return nullptr;
}

}  // namespace lockstep::tune
