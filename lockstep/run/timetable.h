// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/run/loader_state.h"
#include "lockstep/run/schedule.h"
#include "lockstep/spec/job.h"

namespace lockstep::run {

// One phase of the job in steps of the run: [begin, end).
struct PhaseSpan {
  spec::Phase phase;
  int64_t begin = 0;
  int64_t end = 0;
};

// Which step belongs to which phase and epoch: everything about "when" is a pure function of the step, so that a
// checkpoint needs to remember the step only.
class Timetable {
 public:
  // User error when the run would have no step.
  Timetable(const spec::Training& training, int64_t num_samples);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return phases_.back().end; }
  const std::vector<PhaseSpan>& phases() const { return phases_; }

  const PhaseSpan& phase_at(int64_t step) const;  // that takes the step behind `step` steps; of a finished run the last

  double epoch_at(int64_t step) const;  // fractional; 0 before the first step
  // What the loader gives next after `step` steps.
  LoaderState loader_state(int64_t step) const;
  double learning_rate(int64_t step) const;
  // Whether something done every `every_epochs` (0: never) is due after `step` steps; it is after the last.
  bool due(int64_t step, double every_epochs) const;
  bool evaluates(int64_t step, const spec::Evaluation& evaluation) const;  // likewise; 0: after the last only
  int64_t steps_of(double epochs) const;                                   // at least 1
  bool ends_epoch(int64_t step) const { return step % steps_per_epoch_ == 0; }

 private:
  spec::Training training_;
  int64_t steps_per_epoch_ = 1;
  std::vector<PhaseSpan> phases_;
};

}  // namespace lockstep::run
