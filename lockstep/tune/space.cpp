// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/space.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/override.h"
#include "lockstep/task/task.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr int64_t kMostCells = int64_t{1} << 40;

double round_to_step(const Distribution& distribution, double value) {
  const double steps = std::round((value - distribution.low) / distribution.step);
  const double most = std::floor((distribution.high - distribution.low) / distribution.step + 1e-9);
  return distribution.low + std::clamp(steps, 0.0, most) * distribution.step;
}

// The field of the job that a dotted key names; null: none.
const spec::Field* find_job_field(const std::string& key) {
  const spec::Section* section = &spec::job_section();
  const spec::Field* field = nullptr;
  for (const auto& part : spec::split_key(key)) {
    if (!section) return nullptr;
    field = section->find(part.key);
    if (!field) return nullptr;
    section = field->section;
  }
  return field;
}

void collect_keys(const spec::Section& section, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& field : section.fields) {
    keys.push_back(prefix + field.key);
    if (field.section) collect_keys(*field.section, prefix + field.key + ".", keys);
  }
}

[[noreturn]] void refuse_key(const std::string& key) {
  std::vector<std::string> keys;
  collect_keys(spec::job_section(), "", keys);
  std::vector<std::string> near = base::nearest(key, keys);
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const auto& name : keys) {
    if (near.size() < 3 && name.substr(name.rfind('.') + 1) == last) near.push_back(name);
  }
  throw Error(Blame::user, text("space.", key, ": the job has no such key"),
              near.empty() ? "`lockstep explain job` lists them" : text("did you mean ", base::join(near, ", "), "?"));
}

Distribution make_distribution(const spec::Dimension& dimension, bool integer) {
  Distribution made;
  if (!dimension.choice.empty()) {
    made.kind = Distribution::Kind::choice;
    made.choices = dimension.choice;
    made.high = static_cast<double>(dimension.choice.size()) - 1;
    made.step = 1;
    return made;
  }
  const auto& bounds = dimension.log.empty() ? dimension.range : dimension.log;
  made.kind = integer ? Distribution::Kind::integer : Distribution::Kind::real;
  made.low = bounds[0];
  made.high = bounds[1];
  made.log = !dimension.log.empty();
  made.step = integer ? std::max(1.0, dimension.step) : dimension.step;
  const auto whole = [](double value) { return value == std::floor(value); };
  if (integer && !(whole(made.low) && whole(made.high) && whole(made.step))) {
    throw Error(Blame::user,
                text("space.", dimension.key, ": whole numbers between ", made.low, " and ", made.high,
                     made.step == 1 ? "" : text(" in steps of ", made.step)),
                "give whole numbers as bounds and step");
  }
  // Optuna's rule: the highest value is one that the steps reach.
  if (made.step > 0) made.high = round_to_step(made, made.high);
  return made;
}

}  // namespace

bool Distribution::contains(double internal) const {
  if (!std::isfinite(internal)) return false;
  if (kind == Kind::choice) return internal >= 0 && internal <= high && internal == std::floor(internal);
  return internal >= low - 1e-12 * std::abs(low) && internal <= high + 1e-12 * std::abs(high);
}

int64_t Distribution::cells() const {
  if (step <= 0) return 0;
  const double count = std::floor((high - low) / step + 1e-9) + 1;
  return count < static_cast<double>(kMostCells) ? static_cast<int64_t>(count) : 0;
}

double Distribution::at(double unit) const {
  if (kind == Kind::choice) return std::min(high, std::floor(unit * (high + 1)));
  const double half = step / 2;
  if (log) {
    const double value = std::exp(std::log(low - half) + unit * (std::log(high + half) - std::log(low - half)));
    return step > 0 ? round_to_step(*this, value) : std::clamp(value, low, high);
  }
  const double value = low - half + unit * (high - low + step);
  return step > 0 ? round_to_step(*this, value) : std::clamp(value, low, high);
}

double Distribution::unit_of(double internal) const {
  if (kind == Kind::choice) return (internal + 0.5) / (high + 1);
  const double half = step / 2;
  if (log) {
    return (std::log(internal) - std::log(low - half)) / (std::log(high + half) - std::log(low - half));
  }
  return high + step > low ? (internal - low + half) / (high - low + step) : 0;
}

Json Distribution::external(double internal) const {
  if (kind == Kind::choice) {
    const bool one_of_them = internal >= 0 && internal < static_cast<double>(choices.size());
    if (one_of_them) return choices[static_cast<size_t>(internal)];
    throw base::Error(base::Blame::user, base::text("choice number ", internal, " of ", choices.size()),
                      "the study was begun with other choices: give it another name");
  }
  if (kind == Kind::integer) return static_cast<int64_t>(std::llround(internal));
  return internal;
}

std::string to_optuna(const Distribution& distribution) {
  Json all = Json::object();
  Json attributes = Json::object();
  if (distribution.kind == Distribution::Kind::choice) {
    all["name"] = "CategoricalDistribution";
    attributes["choices"] = Json::array(distribution.choices);
  } else if (distribution.kind == Distribution::Kind::integer) {
    all["name"] = "IntDistribution";
    attributes["log"] = distribution.log;
    attributes["step"] = static_cast<int64_t>(distribution.step);
    attributes["low"] = static_cast<int64_t>(distribution.low);
    attributes["high"] = static_cast<int64_t>(distribution.high);
  } else {
    all["name"] = "FloatDistribution";
    attributes["step"] = distribution.step > 0 ? Json(distribution.step) : Json();
    attributes["low"] = distribution.low;
    attributes["high"] = distribution.high;
    attributes["log"] = distribution.log;
  }
  all["attributes"] = attributes;
  return all.dump(-1);
}

std::optional<Distribution> from_optuna(const std::string& json) {
  const Json all = base::parse_json(json, "a distribution");
  const std::string name = all.string_or("name", "");
  const Json* attributes = all.find("attributes");
  if (!attributes) return std::nullopt;
  Distribution made;
  if (name == "CategoricalDistribution") {
    made.kind = Distribution::Kind::choice;
    made.choices = attributes->at("choices").items();
    made.high = static_cast<double>(made.choices.size()) - 1;
    made.step = 1;
    return made;
  }
  if (name != "FloatDistribution" && name != "IntDistribution") return std::nullopt;
  made.kind = name == "IntDistribution" ? Distribution::Kind::integer : Distribution::Kind::real;
  made.low = attributes->at("low").as_double();
  made.high = attributes->at("high").as_double();
  if (const Json* log = attributes->find("log")) made.log = log->as_bool();
  if (const Json* step = attributes->find("step"); step && step->is_number()) made.step = step->as_double();
  return made;
}

Space make_space(const spec::Study& study, const spec::Job* job) {
  Space space;
  for (const auto& dimension : study.space) {
    bool integer = dimension.integer;
    if (job) {
      const spec::Field* field = find_job_field(dimension.key);
      if (!field || field->section) refuse_key(dimension.key);
      integer |= field->type == spec::Type::integer;
    }
    space.push_back({dimension.key, make_distribution(dimension, integer), dimension.when, dimension.points});
  }
  if (!job) return space;
  // Each end of a range and each choice, as the job's own table judges it.
  const Json document = spec::changed_json(*job);
  for (const auto& parameter : space) {
    const int64_t ends = parameter.distribution.kind == Distribution::Kind::choice
                             ? static_cast<int64_t>(parameter.distribution.choices.size())
                             : 2;
    for (int64_t i = 0; i < ends; ++i) {
      const double value = parameter.distribution.kind == Distribution::Kind::choice ? static_cast<double>(i)
                           : i == 0                                                  ? parameter.distribution.low
                                                                                     : parameter.distribution.high;
      Json changed = document;
      spec::apply_sets(spec::job_section(), changed, {text(parameter.name, "=", value_text(parameter, value))});
      spec::Job judged;
      spec::Problems problems;
      spec::read_document(spec::job_section(), &judged, changed, problems);
      problems.throw_if_any();
    }
  }
  return space;
}

bool is_active(const Parameter& parameter, const Space& space, const Values& values) {
  return std::all_of(parameter.when.begin(), parameter.when.end(), [&](const auto& condition) {
    const auto other = std::find_if(space.begin(), space.end(),
                                    [&](const Parameter& candidate) { return candidate.name == condition.first; });
    const auto value = values.find(condition.first);
    return other != space.end() && value != values.end() && value_text(*other, value->second) == condition.second;
  });
}

bool is_maximized(const spec::Study& study, const std::optional<spec::Job>& job) {
  if (study.direction != spec::Direction::headline) return study.direction == spec::Direction::maximize;
  if (!job) return false;
  if (study.objective == "loss" || study.objective == "mae") return false;
  return study.objective != "headline" || task::make_task(*job)->report_words().at("higher_is_better").as_bool();
}

std::string value_text(const Parameter& parameter, double internal) {
  const Json value = parameter.distribution.external(internal);
  return value.is_string() ? value.as_string() : value.dump(-1);
}

std::vector<std::string> to_sets(const Space& space, const Values& values) {
  std::vector<std::string> sets;
  for (const auto& parameter : space) {
    const auto value = values.find(parameter.name);
    if (value != values.end()) sets.push_back(text(parameter.name, "=", value_text(parameter, value->second)));
  }
  return sets;
}

}  // namespace lockstep::tune
