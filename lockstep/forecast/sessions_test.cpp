// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/sessions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lockstep::forecast {
namespace {

// The run's own rule, one step after another, as the training loop has it.
SessionCount step_by_step(const Course& course, const Pace& pace) {
  SessionCount result;
  int64_t done = 0;
  bool owed = false;
  double now = 0;
  while (done < course.steps) {
    now = pace.start_up + (done > 0 ? pace.restore : 0);
    if (pace.walltime > 0 && now + course.step + 2 * pace.save > pace.walltime) return {0, result.saves, 0, 0};
    ++result.jobs;
    double last_save = -1e300, clock = now, interval = pace.first_save;
    const auto save = [&](bool last) {
      const double begun = now;
      now = std::max(now, last_save + pace.save) + (last ? pace.save : pace.stall);
      result.waits += now - begun;
      ++result.saves;
      last_save = clock = now;
      interval = pace.save_interval;
    };
    if (owed) {
      now += course.evaluation;
      if (course.saves_best) save(false);
    }
    bool stopped = false;
    while (done < course.steps && !stopped) {
      const int64_t step = done + 1;
      const bool evaluates = course.evaluates && run::is_due(step, course.evaluate_every, course.steps);
      double needed = (now < last_save + pace.save ? 3 : 2) * pace.save + 2 * course.step;
      needed += (evaluates ? 1.5 * course.evaluation : 0) + std::min(60.0, 0.05 * pace.walltime);
      stopped = pace.walltime > 0 && now + needed > pace.walltime && step < course.steps;
      now += course.step;
      done = step;
      bool saves = stopped || step == course.steps;
      if (course.milestone_every > 0 && step % course.milestone_every == 0) saves = true;
      if (course.save_every > 0) saves = saves || step % course.save_every == 0;
      if (course.save_every == 0 && pace.save_interval > 0) saves = saves || clock + interval - now < course.step / 2;
      const bool here = evaluates && !stopped;
      if (here) now += course.evaluation;
      if (saves || (here && course.saves_best)) save(stopped || step == course.steps);
      owed = evaluates && stopped;
    }
    result.seconds += now;
  }
  if (pace.walltime > 0 && now + pace.finish > pace.walltime) {  // killed, with its last step saved
    const double again = pace.start_up + pace.restore;
    if (again + pace.finish > pace.walltime) return {0, result.saves, 0, 0};
    ++result.jobs;
    result.seconds += pace.walltime - now + again;
  }
  result.seconds += pace.finish;
  return result;
}

TEST(SessionsTest, AreThoseOfTheRunsOwnRule) {
  std::mt19937_64 random(3);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  const auto whole = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t chains = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) {
    Course course;
    course.steps = whole(1, 400);
    course.step = draw(0.1, 3);
    course.evaluates = course.saves_best = whole(0, 1) == 1;
    course.evaluation = draw(0, 20);
    course.evaluate_every = whole(0, 60);
    course.save_every = whole(0, 1) * whole(0, 50);
    course.milestone_every = whole(0, 1) * whole(0, 90);
    if (whole(0, 3) == 0) course.saves_best = false;
    Pace pace;
    pace.start_up = draw(0, 20);
    pace.restore = draw(0, 5);
    pace.save = draw(0, 8);
    pace.stall = draw(0, pace.save);
    pace.first_save = draw(5, 60);
    pace.save_interval = whole(0, 3) == 0 ? 0 : draw(5, 80);
    pace.finish = draw(0, 20);
    pace.walltime = whole(0, 3) == 0 ? 0 : draw(20, 300);
    const SessionCount counted = count_sessions(course, pace);
    const SessionCount walked = step_by_step(course, pace);
    EXPECT_EQ(counted.jobs, walked.jobs) << "case " << i;
    if (walked.jobs == 0) {
      ++refused;
      continue;
    }
    chains += walked.jobs > 1 ? 1 : 0;
    EXPECT_EQ(counted.saves, walked.saves) << "case " << i;
    EXPECT_NEAR(counted.seconds, walked.seconds, 1e-6) << "case " << i;
    EXPECT_NEAR(counted.waits, walked.waits, 1e-6) << "case " << i;
  }
  EXPECT_GT(chains, 100);
  EXPECT_GT(refused, 10);
}

TEST(SessionsTest, SavesDueAtOneStepAreOne) {
  // Milestones after 4 and 8, evaluations after 3, 6 and 9, saves after 6, and the last of ten.
  Course course{.steps = 10, .step = 1, .evaluates = true, .evaluation = 1, .evaluate_every = 3, .save_every = 6};
  course.milestone_every = 4;
  EXPECT_EQ(count_sessions(course, {}).saves, 4);
  course.saves_best = true;
  EXPECT_EQ(count_sessions(course, {}).saves, 6);
}

}  // namespace
}  // namespace lockstep::forecast
