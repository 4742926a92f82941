// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// The value with which a trial reached the rung: its first at or behind that step.
const double* value_at(const Trial& trial, int64_t rung) {
  const auto value = trial.intermediate.lower_bound(rung);
  return value == trial.intermediate.end() ? nullptr : &value->second;
}

}  // namespace

Pruning judge(const spec::Study& study, const std::vector<Trial>& trials, const Trial& trial, bool maximize) {
  Pruning pruning;
  if (study.scheduler == spec::StudyScheduler::none || trial.intermediate.empty()) return pruning;
  if (study.scheduler == spec::StudyScheduler::median) {
    pruning.stop = below_median(study, trials, trial, maximize);
    return pruning;
  }
  const int64_t reached = trial.intermediate.rbegin()->first;
  int64_t rung = study.asha.first;
  for (int64_t k = 0; rung <= reached; ++k, rung *= study.asha.factor) {
    const auto at = trial.intermediate.lower_bound(rung);
    if (at->first != reached) continue;  // judged when it got there
    pruning.rungs.push_back(k);
    const double mine = rated(at->second, maximize);
    int64_t here = 0;
    int64_t better = 0;
    for (const auto& other : trials) {
      const double* value = value_at(other, rung);
      if (!value || other.violation() > 0) continue;
      ++here;
      if (other.id != trial.id && rated(*value, maximize) < mine) ++better;
    }
    if (better >= std::max<int64_t>(1, here / study.asha.factor)) {
      pruning.stop = true;
      break;
    }
  }
  return pruning;
}

}  // namespace lockstep::tune
