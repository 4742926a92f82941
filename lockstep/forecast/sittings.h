// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/forecast/limits.h"

namespace lockstep::forecast {

// What is done behind which steps of a run.
struct Course {
  int64_t steps = 0;
  double step = 0;  // seconds of one, on the average
  bool evaluates = false;
  double evaluation = 0;        // seconds of one
  int64_t evaluate_every = 0;   // steps; 0: after the last only
  int64_t save_every = 0;       // steps; 0: by the clock, and after the last
  int64_t milestone_every = 0;  // steps; 0: none
  bool saves_best = false;      // each evaluation is the best so far, and saved
};

// What comes of it.
struct Sittings {
  int64_t jobs = 0;    // 0: none would come forward
  int64_t saves = 0;   // those that end a job too
  double seconds = 0;  // with start-ups and restores
  double waits = 0;    // of the steps, for saves
};

// What a sitting must have left before it takes one more step: one save may be slow, and a late one is lost.
struct Keeping {
  double save = 0;
  double step = 0;
  double evaluation = 0;  // that follows the step; 0: none
  bool saving = false;    // a save under way comes to its end first
};
double reserve_of(double walltime, const Keeping& keeping);
// Without so much left behind its start-up a sitting is refused: it could not save one step.
double least_of(const Keeping& keeping);

// A sitting after another, event by event, as the run itself goes: it stops when no more than the reserve is left and
// makes up for an evaluation that a stop came before. Of pace: start_up, restore, save, stall, the clock and walltime.
Sittings sit_through(const Course& course, const Pace& pace);

}  // namespace lockstep::forecast
