// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/timetable.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/run/calendar.h"
#include "lockstep/run/order.h"

namespace lockstep::run {

Timetable::Timetable(const spec::Training& training, int64_t num_samples)
    : training_(training), steps_per_epoch_(num_steps(num_samples, training.global_batch)) {
  std::vector<spec::Phase> phases = training.phases;
  if (phases.empty()) phases.emplace_back().epochs = training.epochs;
  const auto lengths = phase_steps(span_of(training), steps_per_epoch_);
  int64_t begin = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    if (lengths[i] > 0) phases_.push_back({phases[i], begin, begin + lengths[i]});
    begin += lengths[i];
  }
  if (phases_.empty()) {
    throw base::Error(base::Blame::user, "the job has no length", "give training.epochs, training.steps or phases");
  }
}

const PhaseSpan& Timetable::phase_at(int64_t step) const {
  const auto span =
      std::find_if(phases_.begin(), phases_.end(), [&](const PhaseSpan& candidate) { return step < candidate.end; });
  return span == phases_.end() ? phases_.back() : *span;
}

double Timetable::epoch_at(int64_t step) const {
  return static_cast<double>(step) / static_cast<double>(steps_per_epoch_);
}

LoaderState Timetable::loader_state(int64_t step) const {
  return {.seed = training_.seed,
          .epoch = step / steps_per_epoch_,
          .consumed = (step % steps_per_epoch_) * training_.global_batch};
}

double Timetable::learning_rate(int64_t step) const {
  const auto span =
      std::find_if(phases_.begin(), phases_.end(), [&](const PhaseSpan& candidate) { return step < candidate.end; });
  base::ensure(span != phases_.end(), "the step is one of the run");
  return run::learning_rate(training_.schedule,
                            {.lr = peak_rate(training_) * span->phase.lr_scale,
                             .warmup_from = warmup_start(training_) * span->phase.lr_scale,
                             .num_steps = span->end - span->begin,
                             .steps_per_epoch = steps_per_epoch_},
                            step - span->begin);
}

bool Timetable::due(int64_t step, double every_epochs) const {
  return every_epochs > 0 && is_due(step, steps_of(every_epochs), total_steps());
}

bool Timetable::evaluates(int64_t step, const spec::Evaluation& evaluation) const {
  return is_due(step, evaluation_steps(evaluation, steps_per_epoch_), total_steps());
}

int64_t Timetable::steps_of(double epochs) const {
  return run::steps_of(epochs, steps_per_epoch_);
}

}  // namespace lockstep::run
