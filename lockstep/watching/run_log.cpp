// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/run_log.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::watching {
namespace {

using base::Json;
using base::text;

constexpr size_t kMostLines = 200;
constexpr size_t kMostWarnings = 50;
constexpr size_t kMostBadSamples = 100;

int64_t step_of(const Json& event) {
  const Json* step = event.find("step");
  return step && step->is_integer() ? step->as_int() : 0;
}

void drop_beyond(std::vector<Json>& events, int64_t step) {
  std::erase_if(events, [&](const Json& event) { return step_of(event) > step; });
}

// Weighted by the steps that each record covers.
class Mean {
 public:
  void add(double value, double weight) {
    if (std::isnan(value)) return;
    sum_ += weight * value;
    weight_ += weight;
  }
  void write(Json& point, const std::string& key) const {
    if (weight_ > 0) point[key] = sum_ / weight_;
  }

 private:
  double sum_ = 0, weight_ = 0;
};

Json point_of(const RunLog& log, size_t from, size_t to) {
  const StepRecord& last = log.steps[to - 1];
  double samples = 0, seconds = 0, memory = kAbsent;
  Mean loss, figure, lr, gradient_norm, watts;
  for (size_t i = from; i < to; ++i) {
    const StepRecord& record = log.steps[i];
    const auto weight = static_cast<double>(record.steps);
    samples += record.samples;
    seconds += record.seconds;
    memory = std::fmax(memory, record.memory);
    loss.add(record.loss, weight);
    figure.add(record.figure, weight);
    lr.add(record.lr, weight);
    gradient_norm.add(record.gradient_norm, weight);
    watts.add(record.watts, weight);
  }
  Json point = Json::object();
  point["step"] = last.step;
  point["epoch"] = last.epoch;
  loss.write(point, "loss");
  figure.write(point, log.figure_name());
  lr.write(point, "lr");
  gradient_norm.write(point, "grad_norm");
  if (seconds > 0) point["samples_per_second"] = samples / seconds;
  if (!std::isnan(memory)) point["memory"] = memory;
  watts.write(point, "watts");
  return point;
}

}  // namespace

double number_in(const Json& event, std::string_view key, double otherwise) {
  const Json* value = event.is_object() ? event.find(key) : nullptr;
  return value && value->is_number() ? value->as_double() : otherwise;
}

void RunLog::add(const Json& event) {
  const std::string& kind = event.at("event").as_string();
  last_time = std::max(last_time, number_in(event, "t"));
  if (kind == "start" || kind == "resume") begin_session(event, kind == "resume");
  add_to_session(event, kind);
  const int64_t step = step_of(event);
  if (kind == "step") {
    add_record(event);
  } else if (kind == "rewind") {
    void_beyond(step);
    warn(text("went back to step ", step, ": ", event.string_or("reason", "the loss")));
  } else if (kind == "epoch") {
    epochs.push_back(event);
  } else if (kind == "evaluate") {
    const std::string split = event.string_or("split", "");
    const size_t before = evaluations.size();
    std::erase_if(evaluations,
                  [&](const Json& one) { return step_of(one) == step && one.string_or("split", "") == split; });
    if (evaluations.size() < before) ++num_voids;
    evaluations.push_back(event);
  } else if (kind == "save") {
    saves.push_back(event);
  } else if (kind == "features") {
    features_seconds += number_in(event, "seconds");
  } else if (kind == "promise") {
    promise = event;
  } else if (kind == "loader_bottleneck") {
    bottleneck = event;
  } else if (kind == "rank_times") {
    pace = event;
  } else if (kind == "said") {
    for (auto& line : base::split(event.string_or("text", ""), '\n')) lines.push_back(std::move(line));
    if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - static_cast<int64_t>(kMostLines));
  } else if (kind == "end") {
    end = event;
  } else if (kind == "stop") {
    stop = event;
  } else if (kind == "bad_sample") {
    if (bad_samples.size() < kMostBadSamples) bad_samples.push_back(event);
    warn(text("cannot read ", event.string_or("path", "a sample"), ": ", event.string_or("reason", "")));
  } else if (kind == "nonfinite") {
    ++num_nonfinite;
    warn(text("step ", step, ": loss or gradient was not finite, the step was left out"));
  } else if (kind == "rising_loss") {
    warn(text("the loss of the first epoch, ", base::fixed(number_in(event, "loss"), 2),
              ", is above that of a network that says the same of every sample: lower training.optimizer.lr"));
  } else if (kind == "save_failed") {
    warn(text("step ", step, ": could not be saved: ", event.string_or("message", "")));
  } else if (kind == "restart" || kind == "gave_up") {
    warn(text(kind == "restart" ? "the ranks were started again: " : "the ranks are started no more: ",
              event.string_or("what", "a fault")));
  }
}

void RunLog::begin_session(const Json& event, bool resumes) {
  if (!start.is_null()) ++num_voids;
  if (resumes) {
    void_beyond(step_of(event));
  } else {
    steps.clear();
    for (auto* events : {&epochs, &evaluations, &saves, &bad_samples}) events->clear();
    promise = Json();
    features_seconds = 0;
  }
  start = event;
  session_began_ = number_in(event, "t");
  end = stop = bottleneck = pace = Json();
  warnings.clear();
  num_warnings = num_nonfinite = 0;
  Json session = Json::object();
  session["began"] = session_began_;
  session["from_step"] = step_of(event);
  for (const char* key : {"host", "ranks", "device", "checkpoint"}) {
    if (const Json* value = event.find(key)) session[key] = *value;
  }
  session["outcome"] = "broke off";
  sessions.push_back(std::move(session));
}

void RunLog::void_beyond(int64_t step) {
  ++num_voids;
  std::erase_if(steps, [&](const StepRecord& record) { return record.step > step; });
  for (auto* events : {&epochs, &evaluations, &saves, &bad_samples}) drop_beyond(*events, step);
  if (!promise.is_null() && step_of(promise) > step) promise = Json();
}

void RunLog::warn(std::string words) {
  ++num_warnings;
  warnings.push_back(std::move(words));
  if (warnings.size() > kMostWarnings) warnings.erase(warnings.begin());
}

void RunLog::add_record(const Json& event) {
  StepRecord record;
  record.step = step_of(event);
  record.steps = std::max<int64_t>(1, event.int_or("steps", 1));
  record.time = number_in(event, "t");
  record.epoch = number_in(event, "epoch", kAbsent);
  record.loss = number_in(event, "loss", kAbsent);
  record.figure = number_in(event, figure_name(), kAbsent);
  record.lr = number_in(event, "lr", kAbsent);
  record.gradient_norm = number_in(event, "grad_norm", kAbsent);
  record.samples = number_in(event, "samples");
  record.seconds = number_in(event, "seconds");
  record.data = number_in(event, "data");
  record.compute = number_in(event, "compute");
  record.communication = number_in(event, "communication");
  record.save = number_in(event, "save");
  record.memory = number_in(event, "memory", kAbsent);
  record.watts = number_in(event, "watts", kAbsent);
  record.joules = number_in(event, "joules", kAbsent);
  steps.push_back(record);
}

// Each session lasts from its start or resume to the event that ended it; the last line seen stands for its end.
void RunLog::add_to_session(const Json& event, const std::string& kind) {
  if (sessions.empty()) return;
  Json& session = sessions.back();
  session["ended"] = number_in(event, "t");
  if (event.contains("step")) {  // a restart tells the last heartbeat's, which may be older than the journal's own
    session["to_step"] = std::max(session.int_or("to_step", 0), step_of(event));
  }
  if (kind == "restart" || kind == "gave_up") {
    session["outcome"] = text("broke off: ", event.string_or("what", "a fault"));
  }
  if (kind == "stop") session["outcome"] = text("stopped: ", event.string_or("reason", "asked to"));
  if (kind == "end") session["outcome"] = "finished";
}

int64_t RunLog::total_steps() const {
  return start.is_object() ? start.int_or("total_steps", 0) : 0;
}

std::string RunLog::figure_name() const {
  const Json* words = start.is_object() ? start.find("report") : nullptr;
  return words && words->is_object() ? words->string_or("training", "accuracy") : "accuracy";
}

size_t RunLog::first_warm() const {
  constexpr size_t kFewest = 3;  // records: of fewer, all count
  const auto first =
      std::find_if(steps.begin(), steps.end(), [&](const StepRecord& record) { return record.time >= session_began_; });
  const auto at = static_cast<size_t>(first - steps.begin());
  return steps.size() - at >= kFewest ? at + 1 : at;
}

TimeSplit RunLog::split(size_t from_record) const {
  TimeSplit split;
  double stepping = 0;
  for (size_t i = from_record; i < steps.size(); ++i) {
    split.data += steps[i].data;
    split.compute += steps[i].compute;
    split.communication += steps[i].communication;
    split.save += steps[i].save;  // what the steps waited; the rest of a save runs beside them
    stepping += steps[i].seconds - steps[i].save;
  }
  const int64_t behind = from_record > 0 && from_record <= steps.size() ? steps[from_record - 1].step : -1;
  for (const auto& event : evaluations) {
    if (step_of(event) > behind) split.evaluation += number_in(event, "seconds");
  }
  if (from_record == 0) split.features = features_seconds;
  split.other = std::max(0.0, stepping - split.data - split.compute - split.communication);
  return split;
}

Json thin_steps(const RunLog& log, size_t most, size_t from_record) {
  Json points = Json::array();
  const size_t count = log.steps.size() - std::min(from_record, log.steps.size());
  const size_t bins = std::min(most, count);
  for (size_t b = 0; b < bins; ++b) {
    points.push_back(point_of(log, from_record + b * count / bins, from_record + (b + 1) * count / bins));
  }
  return points;
}

Json to_json(const TimeSplit& split) {
  Json json = Json::object();
  json["data wait"] = split.data;
  json["compute"] = split.compute;
  json["communication"] = split.communication;
  json["save"] = split.save;
  json["evaluation"] = split.evaluation;
  json["cached features"] = split.features;
  json["other"] = split.other;
  return json;
}

double mean_rate(const RunLog& log) {
  double samples = 0, seconds = 0;
  for (const auto& record : log.steps) samples += record.samples, seconds += record.seconds;
  return seconds > 0 ? samples / seconds : kAbsent;
}

double total_joules(const RunLog& log) {
  double joules = kAbsent;
  for (const auto& record : log.steps) {
    if (!std::isnan(record.joules)) joules = std::isnan(joules) ? record.joules : joules + record.joules;
  }
  return joules;
}

}  // namespace lockstep::watching
