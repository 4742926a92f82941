// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/phases.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::forecast {
namespace {

void add(const TimeForecast& time, double share, TimeForecast& mean) {
  mean.step.value += share * time.step.value;
  mean.step.low += share * time.step.low;
  mean.step.high += share * time.step.high;
  for (const auto& [kind, seconds] : time.by_class) mean.by_class[kind] += share * seconds;
  mean.device += share * time.device;
  mean.host += share * time.host;
  mean.communication += share * time.communication;
  mean.exposed += share * time.exposed;
  mean.skew += share * time.skew;
  mean.roofline += share * time.roofline;
  mean.bytes += share * time.bytes;
  mean.compute_bound_share += share * time.device * time.compute_bound_share;  // seconds, until the end
  for (const auto& note : time.notes) {
    if (std::find(mean.notes.begin(), mean.notes.end(), note) == mean.notes.end()) mean.notes.push_back(note);
  }
}

}  // namespace

TimeForecast mean_time(const std::vector<WeightedTime>& phases) {
  base::ensure(!phases.empty(), "a run has a step");
  if (phases.size() == 1) return phases.front().time;
  double weights = 0;
  for (const auto& phase : phases) weights += phase.weight;
  TimeForecast mean;
  for (const auto& phase : phases) add(phase.time, phase.weight / weights, mean);
  mean.step.basis = phases.front().time.step.basis;
  if (mean.device > 0) mean.compute_bound_share /= mean.device;
  mean.host_bound = mean.host > mean.device + mean.exposed;
  return mean;
}

}  // namespace lockstep::forecast
