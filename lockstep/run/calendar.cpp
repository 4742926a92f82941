// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/calendar.h"

#include <algorithm>
#include <cmath>

namespace lockstep::run {

int64_t steps_of(double epochs, int64_t steps_per_epoch) {
  return std::max<int64_t>(1, std::llround(epochs * static_cast<double>(steps_per_epoch)));
}

int64_t evaluation_steps(const spec::Evaluation& evaluation, int64_t steps_per_epoch) {
  if (evaluation.every_steps > 0) return evaluation.every_steps;
  return evaluation.every_epochs > 0 && steps_per_epoch > 0 ? steps_of(evaluation.every_epochs, steps_per_epoch) : 0;
}

Span span_of(const spec::Training& training) {
  Span span{training.epochs, training.steps};
  for (const auto& phase : training.phases) span.phases.push_back(phase.epochs);
  return span;
}

std::vector<int64_t> phase_steps(const Span& span, int64_t steps_per_epoch) {
  if (span.phases.empty() && span.steps > 0) return {span.steps};
  std::vector<double> phases = span.phases;
  if (phases.empty()) phases.push_back(span.epochs);
  std::vector<int64_t> steps;
  steps.reserve(phases.size());
  for (const double epochs : phases) {
    steps.push_back(epochs > 0 && steps_per_epoch > 0 ? steps_of(epochs, steps_per_epoch) : 0);
  }
  return steps;
}

bool is_due(int64_t step, int64_t every, int64_t total) {
  return step == total || (every > 0 && step % every == 0);
}

int64_t times_due(int64_t every, int64_t total) {
  if (every <= 0) return 1;
  return total / every + (total % every == 0 ? 0 : 1);
}

}  // namespace lockstep::run
