// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/training_state.h"

#include "lockstep/base/clock.h"

namespace lockstep::training {

using base::Json;

namespace {

enum class OnRewind { goes_back, stays, starts_over };

// THE list of what is saved, in the order of state.json. The structured bindings must name every member.
template <class State, class Visit>
void visit_saved(State& state, const Visit& visit) {
  auto& [step, seconds, step_seconds, save_seconds, evaluate_seconds, evaluated, data_shift, rewinds, rewound_from,
         rewound_to, nonfinite, spikes, bad_files, scores, patience, threads, ranks] = state;
  auto& [best, last] = scores;
  auto& [best_waited_for, without] = patience;
  visit("step", step, OnRewind::goes_back);
  visit("seconds", seconds, OnRewind::stays);
  visit("step_seconds", step_seconds, OnRewind::stays);
  visit("save_seconds", save_seconds, OnRewind::stays);
  visit("evaluate_seconds", evaluate_seconds, OnRewind::stays);
  visit("evaluated", evaluated, OnRewind::goes_back);
  visit("data_shift", data_shift, OnRewind::stays);
  visit("rewinds", rewinds, OnRewind::stays);
  visit("rewound_from", rewound_from, OnRewind::stays);
  visit("rewound_to", rewound_to, OnRewind::stays);
  visit("nonfinite", nonfinite, OnRewind::starts_over);
  visit("spikes", spikes, OnRewind::starts_over);
  visit("bad_samples", bad_files, OnRewind::stays);
  visit("best", best, OnRewind::goes_back);
  visit("evaluation", last, OnRewind::goes_back);
  visit("patience_best", best_waited_for, OnRewind::goes_back);
  visit("evaluations_without_better", without, OnRewind::goes_back);
  visit("threads", threads, OnRewind::stays);
  visit("ranks", ranks, OnRewind::stays);
}

void put(Json& saved, const char* key, int64_t value) {
  saved[key] = value;
}
void put(Json& saved, const char* key, double value) {
  saved[key] = value;
}
void put(Json& saved, const char* key, const TrainedSeconds& value) {
  saved[key] = value.total();
}
void put(Json& saved, const char* key, const SpikeDetector& value) {
  if (value.is_on()) saved[key] = value.to_json();
}
void put(Json& saved, const char* key, const std::set<std::string>& value) {
  saved[key] = Json::array_of(value);
}
void put(Json& saved, const char* key, const std::optional<double>& value) {
  if (value) saved[key] = *value;
}
void put(Json& saved, const char* key, const std::optional<task::ScoreSummary>& value) {
  if (value) saved[key] = value->to_json();
}

void take(const Json& saved, const char* key, int64_t& value) {
  value = saved.int_or(key, value);
}
void take(const Json& saved, const char* key, double& value) {
  value = saved.double_or(key, value);
}
void take(const Json& saved, const char* key, TrainedSeconds& value) {
  value.before = saved.double_or(key, 0);
}
void take(const Json& saved, const char* key, SpikeDetector& value) {
  if (const Json* seen = saved.find(key)) value.load(*seen);
}
void take(const Json& saved, const char* key, std::set<std::string>& value) {
  const Json* files = saved.find(key);
  if (!files || !files->is_array()) return;
  for (const auto& file : files->items()) value.insert(file.as_string());
}
void take(const Json& saved, const char* key, std::optional<double>& value) {
  value = saved.contains(key) ? std::optional(saved.at(key).as_double()) : std::nullopt;
}
void take(const Json& saved, const char* key, std::optional<task::ScoreSummary>& value) {
  value = saved.contains(key) ? std::optional(task::ScoreSummary::from_json(saved.at(key))) : std::nullopt;
}

void start_over(SpikeDetector& value) {
  value.forget();
}
template <class Value>
void start_over(Value& value) {
  value = {};
}

// There is no state without a step, and earlier versions never made up for an evaluation.
void take_without_default(const Json& saved, TrainingState& state) {
  state.step = saved.at("step").as_int();
  if (!saved.contains("evaluated")) state.evaluated = state.step;
}

}  // namespace

double TrainedSeconds::total() const {
  return before + base::steady_seconds() - started;
}

void Patience::add(const task::Headline& headline, bool sound, double min_delta) {
  const double margin = headline.higher_is_better ? min_delta : -min_delta;
  const bool better = sound && (!best || headline.better_than(*best + margin));
  without = better ? 0 : without + 1;
  if (better) best = headline.value;
}

void TrainingState::write(Json& saved) const {
  visit_saved(*this, [&](const char* key, const auto& value, OnRewind) { put(saved, key, value); });
}

void TrainingState::resume(const Json& saved) {
  visit_saved(*this, [&](const char* key, auto& value, OnRewind) { take(saved, key, value); });
  take_without_default(saved, *this);
}

void TrainingState::rewind(const Json& saved) {
  visit_saved(*this, [&](const char* key, auto& value, OnRewind how) {
    if (how == OnRewind::goes_back) take(saved, key, value);
    if (how == OnRewind::starts_over) start_over(value);
  });
  take_without_default(saved, *this);
}

}  // namespace lockstep::training
