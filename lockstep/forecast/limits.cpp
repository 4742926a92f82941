// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/limits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/forecast/sessions.h"

namespace lockstep::forecast {
namespace {

double evaluations_per_epoch(const RunAmount& work, const Length& length) {
  const int64_t every = run::evaluation_steps(work.evaluation, length.steps_per_epoch);
  if (work.evaluation.every_steps > 0) return static_cast<double>(length.steps_per_epoch) / static_cast<double>(every);
  return every > 0 ? 1 / work.evaluation.every_epochs : 0;
}

// Seconds that the steps wait for a save when so much time lies between two: for the copy, and for the one before it
// where that is not yet written.
double wait_for_save(const Pace& pace, double between) {
  return pace.stall + std::max(0.0, pace.save - between);
}

Course plan_course(const RunAmount& work, const Length& length, double stepping) {
  const auto steps = [&](double epochs) {
    return epochs > 0 && length.steps_per_epoch > 0 ? run::steps_of(epochs, length.steps_per_epoch) : 0;
  };
  Course course;
  course.steps = length.steps;
  course.step = stepping / static_cast<double>(length.steps);
  course.evaluates = length.num_evaluations > 0;
  if (course.evaluates) course.evaluation = length.evaluations / static_cast<double>(length.num_evaluations);
  course.evaluate_every = run::evaluation_steps(work.evaluation, length.steps_per_epoch);
  course.save_every = work.save_every > 0 && length.steps_per_epoch == 0 ? length.steps : steps(work.save_every);
  course.milestone_every = steps(work.milestone_every);
  course.saves_best = work.saves_best;
  return course;
}

// The mean step; one that reads its samples never takes less than reading them.
double step_seconds(const Pace& pace, double loading, bool& loader_bound) {
  if (pace.phases.empty()) {
    loader_bound = loading > pace.step;
    return std::max(pace.step, loading);
  }
  double mean = 0;
  for (const PhasePace& phase : pace.phases) {
    if (phase.loads && loading > phase.step) loader_bound = true;
    mean += phase.share * (phase.loads ? std::max(phase.step, loading) : phase.step);
  }
  return mean;
}

// Of a run in one piece.
void count_saves(Course course, Pace pace, Length& length) {
  pace.walltime = 0;
  const SessionCount most = count_sessions(course, pace);
  length.most_saves = length.num_saves = most.saves;
  length.saves = most.waits;
  if (!course.evaluates || !course.saves_best) return;
  course.saves_best = false;
  length.num_saves = count_sessions(course, pace).saves;
}

// By the run's own rule of when to stop.
void count_jobs(const Course& course, Pace pace, Length& length) {
  pace.restore += pace.refill;
  const double least = least_time({.save = pace.save, .step = course.step});
  length.shortest_walltime = pace.start_up + pace.restore + std::max(least, pace.finish);
  const SessionCount all = count_sessions(course, pace);
  length.jobs = all.jobs;
  if (all.jobs > 0) length.total = all.seconds;
}

}  // namespace

RunAmount run_amount_of(const spec::Job& job, int64_t samples, int64_t validation_samples) {
  RunAmount work;
  work.samples = samples;
  work.validation_samples = validation_samples;
  work.global_batch = job.training.global_batch;
  work.span = run::span_of(job.training);
  work.evaluation = job.evaluation;
  work.save_every = job.checkpoint.every_epochs;
  work.milestone_every = job.checkpoint.milestone_epochs;
  work.saves_best = !job.data.validate.empty();
  return work;
}

std::optional<Length> estimate_length(const RunAmount& work, const Pace& pace) {
  if (work.span.steps <= 0 && work.samples <= 0) return std::nullopt;
  Length length;
  const auto batch = static_cast<double>(work.global_batch);
  const double loading = pace.loader_rate > 0 ? batch / pace.loader_rate : 0;
  const double step = step_seconds(pace, loading, length.loader_bound);
  const double evaluation = static_cast<double>(work.validation_samples) * pace.evaluation_sample;
  double steps_epoch = 0;  // seconds of one epoch's steps
  if (work.samples > 0) {
    length.steps_per_epoch = (work.samples + work.global_batch - 1) / work.global_batch;
    length.last_batch = work.samples - (length.steps_per_epoch - 1) * work.global_batch;
    steps_epoch = step * static_cast<double>(work.samples) / batch;
    length.epoch = steps_epoch + evaluation * evaluations_per_epoch(work, length);
    if (work.save_every > 0) {
      length.epoch += wait_for_save(pace, length.epoch * work.save_every) / work.save_every;
    } else if (pace.save_interval > 0) {
      length.epoch *= 1 + wait_for_save(pace, pace.save_interval) / pace.save_interval;
    }
  }
  const std::vector<int64_t> phases = run::phase_steps(work.span, length.steps_per_epoch);
  length.steps = std::accumulate(phases.begin(), phases.end(), int64_t{0});
  const int64_t whole_epochs = work.samples > 0 ? length.steps / length.steps_per_epoch : 0;
  const int64_t more = length.steps - whole_epochs * length.steps_per_epoch;  // whole batches all of them
  const double stepping = steps_epoch * static_cast<double>(whole_epochs) + step * static_cast<double>(more);
  if (work.validation_samples > 0) {
    const int64_t every = run::evaluation_steps(work.evaluation, length.steps_per_epoch);
    length.num_evaluations = run::times_due(every, length.steps);
  }
  length.evaluations = evaluation * static_cast<double>(length.num_evaluations);
  if (length.steps == 0) {  // the epoch is known, the run has no length
    length.jobs = 1;
    length.total = pace.start_up;
    return length;
  }
  length.features = pace.features;
  const Course course = plan_course(work, length, stepping + length.features);
  if (course.milestone_every > 0) length.milestones = length.steps / course.milestone_every;
  count_saves(course, pace, length);
  length.useful = stepping + length.features + length.evaluations + length.saves + pace.finish;
  count_jobs(course, pace, length);
  return length;
}

}  // namespace lockstep::forecast
