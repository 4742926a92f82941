// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/run/calendar.h"
#include "lockstep/spec/job.h"

namespace lockstep::forecast {

// What the job asks for: the length of the run and how often it evaluates and saves.
struct RunAmount {
  int64_t samples = 0;             // of one epoch; 0: not known
  int64_t validation_samples = 0;  // of one evaluation; 0: none, or not known
  int64_t global_batch = 1;
  run::Span span = {};
  spec::Evaluation evaluation = {};  // how often
  double save_every = 1;             // epochs; 0: by the clock (Pace::save_interval), or only at the end
  double milestone_every = 0;        // epochs; 0: none
  bool saves_best = false;           // an evaluation that is the best so far
};

// Of so many samples in an epoch and an evaluation.
RunAmount run_amount_of(const spec::Job& job, int64_t samples, int64_t validation_samples);

// The steps of one phase.
struct PhasePace {
  double share = 1;  // of the run's epochs
  double step = 0;
  bool loads = true;  // samples are read; else features are in memory
};

// What one machine does with it. Seconds; `loader_rate` in samples per second over all ranks, 0: no limit known.
struct Pace {
  double step = 0;               // a whole batch
  double evaluation_sample = 0;  // one sample of an evaluation, all ranks together
  double start_up = 0;           // until the first step of a job
  double restore = 0;            // reading the checkpoint, from the second job on
  double save = 0;               // writing one, beside the steps; the last of a job is waited for
  double stall = 0;              // the steps stand still for each of the others, while the state is copied
  double finish = 0;             // behind the last save of the run: the state is hashed, the weights are written
  double first_save = 0;         // by the clock: of training until the first save, and
  double save_interval = 0;      // between two; 0: no clock
  double loader_rate = 0;
  double walltime = 0;                 // of one job; 0: no limit
  std::vector<PhasePace> phases = {};  // empty: all steps are alike
  double features = 0;                 // of the passes that fill the phases' caches of features
  double refill = 0;                   // of that which a resume does again, on the average
};

struct Length {
  int64_t steps_per_epoch = 0;  // the last, smaller batch included; 0: the samples are not known
  int64_t last_batch = 0;       // samples of it
  int64_t steps = 0;            // of the run
  int64_t num_evaluations = 0;
  double epoch = 0;              // seconds: steps, evaluation and save; 0: not known
  double evaluations = 0;        // seconds of all of them
  double features = 0;           // seconds until all caches are filled
  double saves = 0;              // that the steps wait for them
  int64_t num_saves = 0;         // with the one at the end, without those of the best evaluations
  int64_t most_saves = 0;        // should every evaluation be the best so far; the seconds are of this many
  int64_t milestones = 0;        // that are kept
  double useful = 0;             // seconds of the run without start-ups, restores and the saves that end a job
  double total = 0;              // seconds with them, without waiting in the queue
  int64_t jobs = 0;              // under the walltime; 0: no job would make progress
  bool loader_bound = false;     // the decoding threads are slower than the step
  double shortest_walltime = 0;  // below it no job takes a single step, or none can finish
};

// The length of the run, or nothing when neither steps nor samples say how long it is.
// A step never takes less than the loader needs for its samples; the last batch takes its share of a step. Steps, and
// when they evaluate, are those of the run itself (calendar.h).
std::optional<Length> estimate_length(const RunAmount& work, const Pace& pace);

}  // namespace lockstep::forecast
