// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/objective/objective.h"
#include "lockstep/run/background_save.h"
#include "lockstep/run/events.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/timetable.h"
#include "lockstep/step/step.h"
#include "lockstep/task/task.h"

namespace lockstep::training {

// Where a verb's output goes: `show` updates the progress line, `say` prints a line that stays. Empty: nowhere.
struct Logger {
  std::function<void(std::string_view)> show = [](std::string_view) {};
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

// Everything that rank 0 writes down about a run while it goes on: journal, TensorBoard, progress. Other ranks have
// none. Steps are written in groups of about a second, so that a journal of a million steps stays readable. After
// begin() a full or failing disk is reported once and does not stop training.
class Ledger {
 public:
  Ledger(const run::RunPaths& paths, const run::Timetable& timetable,
         std::shared_ptr<const objective::Objective> objective, Logger logger);

  // Asked whenever steps are written down, for what their record shall have besides: memory, power.
  void measure_with(std::function<void(base::Json&)> gauges) { gauges_ = std::move(gauges); }
  void begin(std::string_view event, const base::Json& fields);  // "start" or "resume"
  void phase(const run::PhaseSpan& span);                        // before its first step here: another pace
  void features(int64_t step, int64_t samples, double seconds);  // computed once for many epochs
  void step(int64_t step, const step::StepResult& result, double lr, double data_seconds, double seconds);
  void evaluate(int64_t step, const task::Score& score, bool ema, double seconds);
  void stalled(int64_t step, double seconds);  // the steps waited for a save, after that step
  // A checkpoint is durable; some steps may have passed since its state was copied. `stall` is its part of stalled(),
  // `interval` the seconds between two saves where the clock decides.
  void saved(const run::BackgroundSave::Outcome& save, double stall, std::optional<double> interval);
  // The run went back to an earlier step; `from` is the step that it had reached. Sums since then are dropped.
  void rewound(int64_t from, const base::Json& fields);
  void end_epoch(int64_t step);  // after what belongs to its last step: evaluation and save
  void note(std::string_view event, const base::Json& fields);
  void say(std::string_view line);  // printed and, once the run has begun, written down for those who watch it
  void show(std::string_view line) { logger_.show(line); }
  void sync();

 private:
  struct Sums {
    int64_t steps = 0, samples = 0;
    std::vector<double> figures = {};  // the objective's
    double loss = 0, seconds = 0, data = 0, compute = 0, communication = 0, save = 0;
    void add(const step::StepResult& result, double data_seconds, double total);
  };
  void attempt(const std::function<void()>& write);
  void draw(std::string_view tag, int64_t step, double value);  // in TensorBoard
  void flush(int64_t step);
  void warn_of_rising_loss(int64_t step, double loss);  // after the first epoch
  void show_progress(int64_t step, const step::StepResult& result);

  // Each with the mean of the objective's figure.
  std::vector<std::pair<std::string, double>> figures_of(const Sums& sums) const;

  const run::Timetable& timetable_;
  std::shared_ptr<const objective::Objective> objective_;
  Logger logger_;
  run::Journal journal_;
  run::EventWriter events_;
  Sums group_;  // since the last "step" event
  Sums epoch_;
  std::function<void(base::Json&)> gauges_;
  bool begun_ = false;
  bool told_of_failure_ = false;
  double lr_ = 0;
  double gradient_norm_ = 0;
  int64_t phase_end_ = 0;    // its last step
  int64_t phase_steps_ = 0;  // taken of it in this session
  double step_seconds_ = 0;  // of this phase, smoothed, for the time that is left of it
};

}  // namespace lockstep::training
