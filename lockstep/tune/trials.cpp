// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trials.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

// Optuna's JournalOperation.
enum Operation : int64_t {
  kCreateStudy = 0,
  kDeleteStudy = 1,
  kStudyUserAttr = 2,
  kStudySystemAttr = 3,
  kCreateTrial = 4,
  kTrialParam = 5,
  kTrialState = 6,
  kIntermediate = 7,
  kTrialUserAttr = 8,
  kTrialSystemAttr = 9,
  kDiscardTrials = 10  // of Optuna 5; replayed by nothing
};

double number_of(const Json& value) {
  return value.is_number() ? value.as_double() : std::numeric_limits<double>::quiet_NaN();
}

void merge(Json& into, const Json& from) {
  for (const auto& member : from.members()) into[member.key] = member.value;
}

TrialState state_of(const Json& record, int64_t otherwise) {
  const int64_t state = record.int_or("state", otherwise);
  if (state < 0 || state > 4) throw Error(Blame::user, text("a trial in state ", state), "");
  return static_cast<TrialState>(state);
}

std::string time_of(const Json& record, const char* key) {
  const Json* value = record.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

void set_objective(Trial& trial, const Json& record) {
  if (const Json* value = record.find("value"); value && value->is_number()) trial.objective = value->as_double();
  const Json* values = record.find("values");
  if (values && values->is_array() && values->size() > 0) trial.objective = number_of(values->items()[0]);
}

void set_parameter(Trial& trial, const std::string& name, const Json& value, const Json& distribution) {
  const auto known = from_optuna(distribution.as_string());
  if (!known) return;
  known->external(number_of(value));  // an error where it is none of the choices
  trial.values[name] = number_of(value);
  trial.distributions[name] = *known;
}

// Bare words of Python's json outside strings.
std::string plain_json(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (inside && c == '\\' && i + 1 < line.size()) {
      out += c;
      out += line[++i];
      continue;
    }
    if (c == '"') inside = !inside;
    if (!inside && line.substr(i, 3) == "NaN") {
      out += "null";
      i += 2;
    } else if (!inside && line.substr(i, 8) == "Infinity") {
      out += "1.7976931348623157e308";
      i += 7;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

const char* name_of(TrialState state) {
  switch (state) {
    case TrialState::running:
      return "running";
    case TrialState::complete:
      return "complete";
    case TrialState::pruned:
      return "pruned";
    case TrialState::failed:
      return "failed";
    case TrialState::waiting:
      return "waiting";
  }
  return "";
}

bool Trial::is_paused() const {
  if (state != TrialState::running) return false;
  const Json* paused = system_attrs.find(kPausedAttr);
  return paused && *paused == Json(true);
}

double Trial::violation() const {
  double sum = 0;
  const auto add = [&](const Json& value) { sum += value.is_number() ? std::max(0.0, value.as_double()) : 0; };
  for (const auto& member : system_attrs.members()) {
    if (member.key.starts_with("constraints:")) add(member.value);
    if (member.key == "constraints" && member.value.is_array()) {
      for (const Json& one : member.value.items()) add(one);
    }
  }
  return sum;
}

Json parse_record(std::string_view line, const std::string& where) {
  base::JsonLimits limits;
  limits.max_bytes = size_t{64} << 20;
  limits.comments = false;
  const bool bare = line.find("NaN") != std::string_view::npos || line.find("Infinity") != std::string_view::npos;
  return bare ? base::parse_json(plain_json(line), where, limits) : base::parse_json(line, where, limits);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string number(digits, end);
  if (number.find_first_of(".eE") == std::string::npos) number += ".0";
  return number;
}

void Trials::apply(std::string_view line, const std::string& where) {
  Json record;
  int64_t operation = -1;
  try {
    record = parse_record(line, where);
    operation = record.at("op_code").as_int();
    record.at("worker_id");
  } catch (const Error& error) {
    throw Error(Blame::user, text(where, ": no record of an Optuna journal: ", error.what()),
                "is it the right file? A damaged line can only be removed by hand, keep a copy");
  }
  if (operation < kCreateStudy || operation > kDiscardTrials) {
    throw Error(Blame::user, text(where, ": operation ", operation, ", which Optuna 5.0 does not have"),
                "the file was written by a newer Optuna: go on with that one, or with a newer lockstep");
  }
  try {
    if (operation == kCreateStudy) return create_study(record);
    if (operation == kCreateTrial) return create_trial(record);
    if (operation >= kTrialParam && operation <= kTrialSystemAttr) return change_trial(operation, record);
    if (operation == kDiscardTrials) return;
    const int64_t id = record.at("study_id").as_int();
    if (id < 0 || id >= static_cast<int64_t>(names_.size())) return;
    if (operation == kDeleteStudy) {
      names_[static_cast<size_t>(id)].clear();
      if (study_id_ == id) {
        study_id_.reset();
        trials_.clear();
        index_.clear();
      }
    } else if (study_id_ == id) {
      merge(attrs_, record.at(operation == kStudyUserAttr ? "user_attr" : "system_attr"));
    }
  } catch (const Error& error) {
    throw Error(Blame::user, text(where, ": ", error.what()), "the file was written by another version of Optuna");
  }
}

void Trials::create_study(const Json& record) {
  const std::string name = record.at("study_name").as_string();
  // Two may try at once: the first line counts.
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
  names_.push_back(name);
  if (name != study_) return;
  study_id_ = static_cast<int64_t>(names_.size()) - 1;
  const auto& directions = record.at("directions").items();
  objectives_ = static_cast<int64_t>(directions.size());
  maximize_ = !directions.empty() && directions[0].as_int() == 2;
}

void Trials::create_trial(const Json& record) {
  const int64_t study = record.at("study_id").as_int();
  if (study < 0 || study >= static_cast<int64_t>(names_.size()) || names_[static_cast<size_t>(study)].empty()) return;
  const int64_t id = next_trial_id_++;
  if (study_id_ != study) return;
  Trial trial;
  trial.id = id;
  trial.number = static_cast<int64_t>(trials_.size());
  trial.state = state_of(record, 0);
  trial.start = time_of(record, "datetime_start");
  trial.complete = time_of(record, "datetime_complete");
  set_objective(trial, record);
  const Json* distributions = record.find("distributions");
  if (const Json* params = record.find("params"); params && distributions) {
    for (const auto& member : params->members()) {
      set_parameter(trial, member.key, member.value, distributions->at(member.key));
    }
  }
  if (const Json* attrs = record.find("user_attrs")) merge(trial.user_attrs, *attrs);
  if (const Json* attrs = record.find("system_attrs")) merge(trial.system_attrs, *attrs);
  if (const Json* values = record.find("intermediate_values")) {
    for (const auto& member : values->members()) {
      int64_t step = 0;
      const char* end = member.key.data() + member.key.size();
      const auto [last, error] = std::from_chars(member.key.data(), end, step);
      if (error != std::errc() || last != end) throw Error(Blame::user, text("step '", member.key, "' of a trial"), "");
      trial.intermediate[step] = number_of(member.value);
    }
  }
  index_[id] = trials_.size();
  trials_.push_back(std::move(trial));
}

void Trials::change_trial(int64_t operation, const Json& record) {
  const auto found = index_.find(record.at("trial_id").as_int());
  if (found == index_.end()) return;
  Trial& trial = trials_[found->second];
  if (is_finished(trial.state)) return;
  if (operation == kTrialParam) {
    set_parameter(trial, record.at("param_name").as_string(), record.at("param_value_internal"),
                  record.at("distribution"));
  } else if (operation == kTrialState) {
    const TrialState state = state_of(record, -1);
    if (state == TrialState::running && trial.state == TrialState::running) return;
    if (state == TrialState::running) trial.start = time_of(record, "datetime_start");
    if (is_finished(state)) trial.complete = time_of(record, "datetime_complete");
    trial.state = state;
    set_objective(trial, record);
  } else if (operation == kIntermediate) {
    trial.intermediate[record.at("step").as_int()] = number_of(record.at("intermediate_value"));
  } else if (operation == kTrialUserAttr) {
    merge(trial.user_attrs, record.at("user_attr"));
  } else {
    merge(trial.system_attrs, record.at("system_attr"));
  }
}

const Trial& Trials::by_id(int64_t id) const {
  const auto found = index_.find(id);
  base::ensure(found != index_.end(), "the trial is one of this study");
  return trials_[found->second];
}

const Trial* best_of(const std::vector<Trial>& trials, bool maximize) {
  const Trial* best = nullptr;
  for (const auto& trial : trials) {
    if (trial.state != TrialState::complete || !trial.objective || std::isnan(*trial.objective)) continue;
    if (trial.violation() > 0) continue;
    if (!best || (maximize ? *trial.objective > *best->objective : *trial.objective < *best->objective)) best = &trial;
  }
  return best;
}

}  // namespace lockstep::tune
