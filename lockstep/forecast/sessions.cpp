// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/sessions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::forecast {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Walk {
 public:
  Walk(const Course& course, const Pace& pace) : course_(course), pace_(pace) {}

  SessionCount all() {
    while (done_ < course_.steps) {
      now_ = pace_.start_up + (done_ > 0 ? pace_.restore : 0);
      if (now_ + least_time({.save = pace_.save, .step = course_.step}) > limit()) {
        result_.jobs = 0;
        return result_;
      }
      ++result_.jobs;
      sit();
      result_.seconds += now_;
    }
    finish();
    return result_;
  }

 private:
  // A job that the walltime ends meanwhile has saved its last step: one more does nothing but this.
  void finish() {
    result_.seconds += pace_.finish;
    if (now_ + pace_.finish <= limit()) return;
    result_.seconds += limit() - now_;
    now_ = pace_.start_up + pace_.restore;
    result_.seconds += now_;
    result_.jobs = now_ + pace_.finish > limit() ? 0 : result_.jobs + 1;
  }

  void sit() {
    saved_ = -kNever;
    strike_ = course_.save_every == 0 && pace_.save_interval > 0 ? now_ + pace_.first_save : kNever;
    if (owed_) evaluate_and_save(/*due=*/false);
    owed_ = false;
    while (done_ < course_.steps) {
      const int64_t next = next_event();
      const int64_t plain = std::min(next - done_ - 1, plain_steps());
      now_ += static_cast<double>(plain) * course_.step;
      done_ += plain;
      const bool evaluates = evaluates_after(done_ + 1);
      const bool stop = now_ + reserve(evaluates) > limit();
      now_ += course_.step;
      const bool strikes = strike_ - now_ < course_.step / 2;
      ++done_;
      if (stop && done_ < course_.steps) {
        owed_ = evaluates;
        return save(/*last=*/true);
      }
      const bool due = strikes || done_ == course_.steps || forced(done_);
      if (evaluates) {
        evaluate_and_save(due);
      } else if (due) {
        save(done_ == course_.steps);
      }
    }
  }

  void evaluate_and_save(bool due) {
    now_ += course_.evaluation;
    if (due || course_.saves_best) save(done_ == course_.steps);
  }

  bool evaluates_after(int64_t step) const {
    return course_.evaluates && run::is_due(step, course_.evaluate_every, course_.steps);
  }
  bool forced(int64_t step) const {
    return (course_.save_every > 0 && step % course_.save_every == 0) ||
           (course_.milestone_every > 0 && step % course_.milestone_every == 0);
  }

  // The next step behind which anything is done; the ones before it are alike.
  int64_t next_event() const {
    int64_t next = course_.steps;
    for (const int64_t every :
         {course_.evaluates ? course_.evaluate_every : 0, course_.save_every, course_.milestone_every}) {
      if (every > 0) next = std::min(next, (done_ / every + 1) * every);
    }
    if (strike_ == kNever) return next;
    const double until = (strike_ - course_.step / 2 - now_) / course_.step;  // the clock is heard behind a step
    return until < static_cast<double>(next - done_) ? std::min(next, done_ + std::max<int64_t>(1, count_over(until)))
                                                     : next;
  }

  // Of steps with nothing behind them, before which the session does not stop.
  int64_t plain_steps() const {
    if (limit() == kNever) return course_.steps;
    const double left = limit() - now_ - stop_reserve(pace_.walltime, {.save = pace_.save, .step = course_.step});
    const double busy = saved_ + pace_.save - now_;  // until then a save is under way
    const int64_t with_save = count_over((left - pace_.save) / course_.step);
    if (static_cast<double>(with_save) * course_.step < busy) return with_save;
    return count_over(left / course_.step);
  }

  // The smallest number, at least 0, above the value.
  int64_t count_over(double value) const {
    return value < 0 ? 0 : static_cast<int64_t>(std::min(value, static_cast<double>(course_.steps))) + 1;
  }

  double limit() const { return pace_.walltime > 0 ? pace_.walltime : kNever; }
  double reserve(bool evaluates) const {
    return stop_reserve(pace_.walltime, {.save = pace_.save,
                                         .step = course_.step,
                                         .evaluation = evaluates ? course_.evaluation : 0,
                                         .saving = now_ < saved_ + pace_.save});
  }

  // Waits for the one before it; the last of a session until it is written, the others while the state is copied.
  void save(bool last) {
    const double wait = std::max(0.0, saved_ + pace_.save - now_) + (last ? pace_.save : pace_.stall);
    now_ += wait;
    result_.waits += wait;
    ++result_.saves;
    saved_ = now_;
    if (strike_ != kNever) strike_ = now_ + pace_.save_interval;
  }

  const Course& course_;
  const Pace& pace_;
  SessionCount result_;
  int64_t done_ = 0;
  bool owed_ = false;  // an evaluation that a stop came before
  double now_ = 0;     // of this session
  double saved_ = 0;   // when the last save of this session began
  double strike_ = 0;  // of the clock, next
};

}  // namespace

double stop_reserve(double walltime, const Keeping& keeping) {
  const double margin = std::min(60.0, 0.05 * walltime);
  return (keeping.saving ? 3 : 2) * keeping.save + 2 * keeping.step + 1.5 * keeping.evaluation + margin;
}

double least_time(const Keeping& keeping) {
  return keeping.step + 2 * keeping.save;
}

SessionCount count_sessions(const Course& course, const Pace& pace) {
  return Walk(course, pace).all();
}

}  // namespace lockstep::forecast
