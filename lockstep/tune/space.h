// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/study.h"
#include "lockstep/tune/values.h"

namespace lockstep::tune {

// What one parameter may be, as Optuna writes it down. A value is a number inside: the value itself, or the index of a
// choice ("internal representation").
struct Distribution {
  enum class Kind { real, integer, choice };
  Kind kind = Kind::real;
  double low = 0;
  double high = 0;
  bool log = false;
  double step = 0;  // 0: none; of integers at least 1
  std::vector<base::Json> choices = {};

  bool operator==(const Distribution&) const = default;
  // Whether a value of it may be `internal`.
  bool contains(double internal) const;
  // The number in [0, 1) as a value, evenly by this distribution's own measure; and back, to the middle of its cell.
  double at(double unit) const;
  double unit_of(double internal) const;
  int64_t cells() const;                       // how many values there are; 0: a continuum
  base::Json external(double internal) const;  // as it stands in a document
};

std::string to_optuna(const Distribution& distribution);           // JSON, as text
std::optional<Distribution> from_optuna(const std::string& json);  // none: a kind that we do not know

struct Parameter {
  std::string name;
  Distribution distribution;
  spec::Named<std::string> when = {};
  int64_t points = 0;  // of a grid
};
using Space = std::vector<Parameter>;

// The space of a study. With a job every name must be a key of it and every value pass its checks (the ends of a range,
// each choice); user error with the nearest key otherwise.
Space make_space(const spec::Study& study, const spec::Job* job);

// Whether the parameter has a value beside those of the parameters before it.
bool is_active(const Parameter& parameter, const Space& space, const Values& values);

// Whether the study looks for the largest value: as it says, else as the job's headline is read; of a program: no.
bool is_maximized(const spec::Study& study, const std::optional<spec::Job>& job);

// As words for --set and for the program: "training.optimizer.lr", "0.0123".
std::string value_text(const Parameter& parameter, double internal);
std::vector<std::string> to_sets(const Space& space, const Values& values);

}  // namespace lockstep::tune
