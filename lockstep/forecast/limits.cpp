// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/limits.h"

#include <algorithm>
#include <cmath>

namespace lockstep::forecast {
namespace {

// Times that something is done which is due every `every` epochs and at the end of the run.
double occurrences(double epochs, double every) {
  return every > 0 ? std::max(1.0, std::ceil(epochs / every - 1e-9)) : 1.0;
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

std::optional<Length> length_of(const Workload& work, const Pace& pace) {
  if (work.steps <= 0 && work.samples <= 0) return std::nullopt;
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
    length.epoch = steps_epoch + (work.evaluate_every > 0 ? evaluation / work.evaluate_every : 0) +
                   (work.save_every > 0 ? pace.save / work.save_every : 0);
  }
  double epochs = work.epochs;
  double stepping = 0;
  if (work.steps > 0) {
    length.steps = work.steps;
    epochs = work.samples > 0 ? static_cast<double>(work.steps) / static_cast<double>(length.steps_per_epoch) : 0;
    stepping = work.samples > 0 ? steps_epoch * epochs : step * static_cast<double>(work.steps);
  } else {
    length.steps = std::llround(std::ceil(epochs * static_cast<double>(length.steps_per_epoch) - 1e-9));
    stepping = steps_epoch * epochs;
  }
  length.evaluations = evaluation * occurrences(epochs, work.evaluate_every);
  length.saves = pace.save * occurrences(epochs, work.save_every);
  length.useful = stepping + length.evaluations + length.saves;
  count_jobs(pace, step, length);
  return length;
}

}  // namespace lockstep::forecast
