// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/forecast/limits.h"

namespace lockstep::forecast {

// What a run does after which steps.
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

// The sessions of a run, counted.
struct SessionCount {
  int64_t jobs = 0;    // 0: none would make progress
  int64_t saves = 0;   // those that end a job too
  double seconds = 0;  // with start-ups, restores and the finish
  double waits = 0;    // of the steps, for saves
};

// What a session must have time for before it takes one more step: a save may be slow, and a late one is lost.
struct Keeping {
  double save = 0;
  double step = 0;
  double evaluation = 0;  // that follows the step; 0: none
  bool saving = false;    // a save under way comes to its end first
};
double stop_reserve(double walltime, const Keeping& keeping);
// A session with less time than this after its start-up is refused: it could not save one step.
double least_time(const Keeping& keeping);

// Counts one session after another, event by event, by the run's own rules: it stops when no more than the reserve is
// left, and the next session makes up for an evaluation that the stop came before. Of pace: start_up, restore, save,
// stall, finish, the clock and walltime.
SessionCount count_sessions(const Course& course, const Pace& pace);

}  // namespace lockstep::forecast
