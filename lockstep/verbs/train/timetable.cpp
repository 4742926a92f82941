// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/timetable.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/data/order.h"

namespace lockstep::verbs {

Timetable::Timetable(const spec::Training& training, int64_t num_samples)
    : training_(training), steps_per_epoch_(data::num_steps(num_samples, training.global_batch)) {
  std::vector<spec::Phase> phases = training.phases;
  if (phases.empty()) phases.emplace_back().epochs = training.epochs;
  int64_t begin = 0;
  for (const auto& phase : phases) {
    const auto by_epochs = std::llround(phase.epochs * static_cast<double>(steps_per_epoch_));
    const bool by_steps = training.phases.empty() && training.steps > 0;
    const int64_t length = by_steps ? training.steps : std::max<int64_t>(1, by_epochs);
    if (phase.epochs <= 0 && !by_steps) continue;
    stages_.push_back({phase, begin, begin + length});
    begin += length;
  }
  if (stages_.empty()) {
    throw base::Error(base::Blame::user, "the job has no length", "give training.epochs, training.steps or phases");
  }
}

const Stage& Timetable::stage_at(int64_t step) const {
  const auto stage =
      std::find_if(stages_.begin(), stages_.end(), [&](const Stage& candidate) { return step < candidate.end; });
  return stage == stages_.end() ? stages_.back() : *stage;
}

double Timetable::epoch_at(int64_t step) const {
  return static_cast<double>(step) / static_cast<double>(steps_per_epoch_);
}

data::LoaderState Timetable::loader_state(int64_t step) const {
  return {.seed = training_.seed,
          .epoch = step / steps_per_epoch_,
          .consumed = (step % steps_per_epoch_) * training_.global_batch};
}

double Timetable::learning_rate(int64_t step) const {
  const auto stage =
      std::find_if(stages_.begin(), stages_.end(), [&](const Stage& candidate) { return step < candidate.end; });
  base::ensure(stage != stages_.end(), "the step is one of the run");
  return step::learning_rate(training_.schedule,
                             {.lr = step::peak_rate(training_) * stage->phase.lr_scale,
                              .warmup_from = step::warmup_start(training_) * stage->phase.lr_scale,
                              .num_steps = stage->end - stage->begin,
                              .steps_per_epoch = steps_per_epoch_},
                             step - stage->begin);
}

bool Timetable::due(int64_t step, double every_epochs) const {
  if (every_epochs <= 0) return false;
  if (step == total_steps()) return true;
  return step % steps_of(every_epochs) == 0;
}

int64_t Timetable::steps_of(double epochs) const {
  return std::max<int64_t>(1, std::llround(epochs * static_cast<double>(steps_per_epoch_)));
}

}  // namespace lockstep::verbs
