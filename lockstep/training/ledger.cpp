// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/ledger.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::training {
namespace {

using base::fixed;
using base::Json;
using base::percent;
using base::text;

constexpr double kGroupSeconds = 1;

double mean(double sum, int64_t count) {
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

}  // namespace

Ledger::Ledger(const run::RunPaths& paths, const run::Timetable& timetable,
               std::shared_ptr<const objective::Objective> objective, Logger logger)
    : timetable_(timetable),
      objective_(std::move(objective)),
      logger_(std::move(logger)),
      journal_(paths.journal()),
      events_(paths.events()),
      phase_end_(timetable.total_steps()) {}

void Ledger::Sums::add(const step::StepResult& result, double data_seconds, double total) {
  steps += 1;
  seconds += total;
  data += data_seconds;
  compute += result.compute_seconds;
  communication += result.communicate_seconds;
  if (!result.finite) return;
  samples += result.samples;
  figures.resize(result.figures.size());
  for (size_t i = 0; i < figures.size(); ++i) figures[i] += result.figures[i];
  loss += result.loss * static_cast<double>(result.samples);
}

std::vector<std::pair<std::string, double>> Ledger::figures_of(const Sums& sums) const {
  std::vector<std::pair<std::string, double>> all;
  const auto names = objective_->figures();
  for (size_t i = 0; i < sums.figures.size(); ++i) all.emplace_back(names[i], mean(sums.figures[i], sums.samples));
  return all;
}

void Ledger::begin(std::string_view event, const Json& fields) {
  journal_.append(event, fields);
  journal_.sync();
  begun_ = true;
}

void Ledger::say(std::string_view line) {
  logger_.say(line);
  if (!begun_) return;  // a start that fails leaves no journal behind
  Json fields = Json::object();
  fields["text"] = line;
  note("said", fields);
}

// A history with a gap is better than no training.
void Ledger::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const base::Error& error) {
    if (told_of_failure_) return;
    told_of_failure_ = true;
    logger_.say(text("the history of this run has gaps from here on, training goes on: ", error.what(),
                     error.fix().empty() ? "" : text("; ", error.fix())));
  }
}

void Ledger::note(std::string_view event, const Json& fields) {
  attempt([&] { journal_.append(event, fields); });
}

void Ledger::draw(std::string_view tag, int64_t step, double value) {
  attempt([&] { events_.scalar(tag, step, value); });
}

void Ledger::sync() {
  attempt([&] { journal_.sync(); });
}

void Ledger::phase(const run::PhaseSpan& span) {
  phase_end_ = span.end;
  phase_steps_ = 0;
}

void Ledger::features(int64_t step, int64_t samples, double seconds) {
  Json fields = Json::object();
  fields["step"] = step;
  fields["samples"] = samples;
  fields["seconds"] = seconds;
  note("features", fields);
}

void Ledger::step(int64_t step, const step::StepResult& result, double lr, double data_seconds, double seconds) {
  group_.add(result, data_seconds, seconds);
  epoch_.add(result, data_seconds, seconds);
  lr_ = lr;
  gradient_norm_ = result.gradient_norm;
  // The first step of a phase also chooses kernels and starts threads: it counts until there is a second one.
  const double weight = phase_steps_ < 2 ? 1 : std::max(0.05, 1 / static_cast<double>(phase_steps_));
  step_seconds_ += weight * (seconds - step_seconds_);
  ++phase_steps_;
  const bool ends = timetable_.ends_epoch(step) || step == timetable_.total_steps();
  if (group_.seconds >= kGroupSeconds || ends) flush(step);
  show_progress(step, result);
}

void Ledger::flush(int64_t step) {
  if (group_.steps == 0) return;
  const double loss = mean(group_.loss, group_.samples);
  Json fields = Json::object();
  fields["step"] = step;
  fields["steps"] = group_.steps;
  fields["epoch"] = timetable_.epoch_at(step);
  if (group_.samples > 0) {  // else there is no mean
    fields["loss"] = loss;
    for (const auto& [name, value] : figures_of(group_)) fields[name] = value;
  }
  fields["lr"] = lr_;
  fields["grad_norm"] = gradient_norm_;
  fields["samples"] = group_.samples;
  fields["seconds"] = group_.seconds;
  fields["data"] = group_.data;
  fields["compute"] = group_.compute;
  fields["communication"] = group_.communication;
  fields["save"] = group_.save;
  if (gauges_) gauges_(fields);
  note("step", fields);
  if (group_.samples > 0) {
    draw("train/loss", step, loss);
    for (const auto& [name, value] : figures_of(group_)) draw("train/" + name, step, value);
  }
  draw("train/learning_rate", step, lr_);
  draw("train/gradient_norm", step, gradient_norm_);
  draw("train/samples_per_second", step, static_cast<double>(group_.samples) / std::max(1e-9, group_.seconds));
  group_ = {};
}

void Ledger::end_epoch(int64_t step) {
  const double loss = mean(epoch_.loss, epoch_.samples);
  const double rate = static_cast<double>(epoch_.samples) / std::max(1e-9, epoch_.seconds);
  Json fields = Json::object();
  fields["epoch"] = step / timetable_.steps_per_epoch();
  fields["step"] = step;
  if (epoch_.samples > 0) {
    fields["loss"] = loss;
    for (const auto& [name, value] : figures_of(epoch_)) fields[name] = value;
  }
  fields["samples"] = epoch_.samples;
  fields["seconds"] = epoch_.seconds;
  fields["samples_per_second"] = rate;
  note("epoch", fields);
  const auto share = [&](double part) { return percent(part / std::max(1e-9, epoch_.seconds), 0); };
  std::string means = epoch_.samples > 0 ? text("loss ", fixed(loss, 4)) : "no sample with a finite loss";
  for (const auto& [name, value] : figures_of(epoch_)) {
    if (epoch_.samples > 0) means += "  " + objective_->figure_text(name, value);
  }
  say(text("epoch ", step / timetable_.steps_per_epoch(), "  ", means, "  ", fixed(rate, 1), " samples/s  (data wait ",
           share(epoch_.data), ", compute ", share(epoch_.compute), ", communication ", share(epoch_.communication),
           ", save ", share(epoch_.save), ")"));
  warn_of_rising_loss(step, loss);
  epoch_ = {};
}

// Noise around the loss of a network that has learnt nothing yet is no warning, nor is an epoch of a few steps.
void Ledger::warn_of_rising_loss(int64_t step, double loss) {
  constexpr int64_t kFewestSteps = 8;
  constexpr double kNoise = 1.1;
  const auto uninformed = objective_->uninformed_loss();
  if (!uninformed || step > timetable_.steps_per_epoch() || epoch_.steps < kFewestSteps || epoch_.samples == 0) return;
  if (loss <= kNoise * *uninformed) return;
  Json fields = Json::object();
  fields["step"] = step;
  fields["loss"] = loss;
  fields["uninformed_loss"] = *uninformed;
  note("rising_loss", fields);
  say(text("warning: the loss of the first epoch, ", fixed(loss, 2), ", is above that of a network that says the ",
           "same of every sample, ", fixed(*uninformed, 2),
           ": the learning rate is likely too high; lower training.optimizer.lr (the rate is ", lr_, " now)"));
}

void Ledger::show_progress(int64_t step, const step::StepResult& result) {
  const char* phase = timetable_.phases().size() > 1 ? " in this phase " : " ";
  const std::string pace = step_seconds_ > 1 ? text(fixed(step_seconds_, 1), " s/step")
                                             : text(fixed(1 / std::max(1e-9, step_seconds_), 2), " steps/s");
  logger_.show(text("step ", step, "/", timetable_.total_steps(), "  epoch ", fixed(timetable_.epoch_at(step), 2),
                    "  loss ", fixed(result.loss, 3), "  lr ", lr_, "  ", pace, "  left", phase,
                    base::duration_text(step_seconds_ * static_cast<double>(phase_end_ - step))));
}

void Ledger::evaluate(int64_t step, const task::Score& score, bool ema, double seconds) {
  flush(step);
  Json fields = Json::object();
  fields["step"] = step;
  fields["epoch"] = timetable_.epoch_at(step);
  fields["split"] = "validate";
  fields["weights"] = ema ? "ema" : "raw";
  fields["samples"] = score.samples();
  const Json figures = score.figures();
  for (const auto& member : figures.members()) fields[member.key] = member.value;
  fields["headline"] = task::to_json(score.headline());
  fields["seconds"] = seconds;
  note("evaluate", fields);
  for (const auto& member : figures.members()) {
    if (member.value.is_number()) draw("validate/" + member.key, step, member.value.as_double());
  }
  say(text("  validation at step ", step, ": ", score.line(), "  (", score.samples(), " samples, ",
           base::duration_text(seconds), ")"));
}

void Ledger::stalled(int64_t step, double seconds) {
  flush(step);
  group_.save += seconds;
  group_.seconds += seconds;
  epoch_.save += seconds;
  epoch_.seconds += seconds;
}

void Ledger::saved(const run::BackgroundSave::Outcome& save, double stall, std::optional<double> interval) {
  Json fields = Json::object();
  fields["step"] = save.step;
  fields["checkpoint"] = save.folder.filename().string();
  fields["bytes"] = save.bytes;
  fields["seconds"] = save.seconds;
  fields["stall"] = stall;
  fields["processor"] = save.processor_seconds;
  fields["best"] = save.best;
  if (interval) fields["interval"] = *interval;
  note("save", fields);
}

void Ledger::rewound(int64_t from, const Json& fields) {
  flush(from);
  epoch_ = {};
  note("rewind", fields);
  sync();
}

}  // namespace lockstep::training
