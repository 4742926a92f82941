// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/limits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::forecast {
namespace {

// Times that something is done which is due every `epochs` and at the end of the run.
int64_t occurrences(const Length& length, double epochs) {
  if (epochs <= 0 || length.steps_per_epoch == 0) return 1;
  return times_due(steps_of(epochs, length.steps_per_epoch), length.steps);
}

// Seconds that the steps wait for a save when so much time lies between two: for the copy, and for the one before it
// where that is not yet written.
double wait_for_save(const Pace& pace, double between) {
  return pace.stall + std::max(0.0, pace.save - between);
}

// A run of `training` seconds: as often as the job or the clock says, and at the end.
void count_saves(const Workload& work, const Pace& pace, double training, Length& length) {
  length.num_saves = occurrences(length, work.save_every);
  double between = training / static_cast<double>(length.num_saves);
  if (work.save_every <= 0 && pace.save_interval > 0 && training > pace.first_save) {
    length.num_saves += 1 + static_cast<int64_t>((training - pace.first_save) / pace.save_interval);
    between = pace.save_interval;
  }
  length.saves = static_cast<double>(length.num_saves - 1) * wait_for_save(pace, between) + pace.save;
}

// A job starts up, restores (not the first), works, and saves before its time is over. What it may work is shorter by
// one step, since it stops at the end of one.
void count_jobs(const Pace& pace, double step, Length& length) {
  length.shortest_walltime = pace.start_up + pace.restore + pace.save + step;
  if (pace.walltime <= 0) {
    length.jobs = 1;
    length.total = pace.start_up + length.useful;
    return;
  }
  const double first = pace.walltime - pace.start_up - pace.save;
  if (length.useful <= first) {
    length.jobs = 1;
    length.total = pace.start_up + length.useful;
    return;
  }
  if (pace.walltime < length.shortest_walltime) return;
  const double later = std::max(step, first - pace.restore - step);
  const double rest = length.useful - std::max(step, first - step);
  length.jobs = 1 + std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rest / later - 1e-9)));
  const auto more = static_cast<double>(length.jobs - 1);
  length.total = length.useful + (more + 1) * pace.start_up + more * (pace.restore + pace.save);
}

}  // namespace

Workload workload_of(const spec::Job& job, int64_t samples, int64_t validation_samples) {
  Workload work;
  work.samples = samples;
  work.validation_samples = validation_samples;
  work.global_batch = job.training.global_batch;
  work.span = span_of(job.training);
  work.evaluate_every = job.evaluation.every_epochs;
  work.save_every = job.checkpoint.every_epochs;
  return work;
}

std::optional<Length> length_of(const Workload& work, const Pace& pace) {
  if (work.span.steps <= 0 && work.samples <= 0) return std::nullopt;
  Length length;
  const auto batch = static_cast<double>(work.global_batch);
  const double loading = pace.loader_rate > 0 ? batch / pace.loader_rate : 0;
  const double step = std::max(pace.step, loading);
  length.loader_bound = loading > pace.step;
  const double evaluation = static_cast<double>(work.validation_samples) * pace.evaluation_sample;
  double steps_epoch = 0;  // seconds of one epoch's steps
  if (work.samples > 0) {
    length.steps_per_epoch = (work.samples + work.global_batch - 1) / work.global_batch;
    length.last_batch = work.samples - (length.steps_per_epoch - 1) * work.global_batch;
    steps_epoch = step * static_cast<double>(work.samples) / batch;
    length.epoch = steps_epoch + (work.evaluate_every > 0 ? evaluation / work.evaluate_every : 0);
    if (work.save_every > 0) {
      length.epoch += wait_for_save(pace, length.epoch * work.save_every) / work.save_every;
    } else if (pace.save_interval > 0) {
      length.epoch *= 1 + wait_for_save(pace, pace.save_interval) / pace.save_interval;
    }
  }
  const std::vector<int64_t> phases = phase_steps(work.span, length.steps_per_epoch);
  length.steps = std::accumulate(phases.begin(), phases.end(), int64_t{0});
  const int64_t whole_epochs = work.samples > 0 ? length.steps / length.steps_per_epoch : 0;
  const int64_t more = length.steps - whole_epochs * length.steps_per_epoch;  // whole batches all of them
  const double stepping = steps_epoch * static_cast<double>(whole_epochs) + step * static_cast<double>(more);
  length.num_evaluations = work.validation_samples > 0 ? occurrences(length, work.evaluate_every) : 0;
  length.evaluations = evaluation * static_cast<double>(length.num_evaluations);
  count_saves(work, pace, stepping + length.evaluations, length);
  length.useful = stepping + length.evaluations + length.saves;
  count_jobs(pace, step, length);
  return length;
}

}  // namespace lockstep::forecast
