// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/context.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr double kSurest = 1 - 1e-6;  // a score of 1 has no log-odds

// The cells of one line: commas between, "" within quotes.
std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

std::optional<double> number_of(const std::string& cell) {
  double number = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (code != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return number;
}

}  // namespace

Context::Context(std::string_view csv, const std::string& source, const std::vector<std::string>& classes,
                 double strength)
    : num_classes_(classes.size()), logarithms_(num_classes_ * num_classes_) {
  int64_t number = 0;
  for (size_t at = 0; at < csv.size();) {
    const size_t end = std::min(csv.find('\n', at), csv.size());
    std::string_view line = csv.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::vector<std::string> cells = csv_cells(line);
    const auto weight = cells.size() == 3 ? number_of(cells[2]) : std::nullopt;
    if (!weight && number == 1 && cells.size() == 3) continue;  // a header
    if (!weight || !(*weight > 0) || !std::isfinite(*weight)) {
      throw Error(Blame::user,
                  text(source, ":", number, ": \"", line, "\" is no class,class,weight nor class,COLUMN=VALUE,weight"),
                  "a weight is a number above 0; 1 says nothing of a pair");
    }
    const auto label = [&](const std::string& name) {
      const auto found = std::find(classes.begin(), classes.end(), name);
      if (found == classes.end())
        throw Error(Blame::user, text(source, ":", number, ": the class '", name, "' is none of the training data's"),
                    base::did_you_mean(name, classes));
      return static_cast<size_t>(found - classes.begin());
    };
    const size_t a = label(cells[0]);
    const bool is_class = std::find(classes.begin(), classes.end(), cells[1]) != classes.end();
    if (!is_class && cells[1].find('=') != std::string::npos) {
      columns_.push_back(read_column(cells[1]));
      columns_.back().label = a;
      columns_.back().logarithm = strength * std::log(*weight);
      continue;
    }
    const size_t b = label(cells[1]);
    logarithms_[a * num_classes_ + b] = logarithms_[b * num_classes_ + a] = strength * std::log(*weight);
  }
}

Context::ColumnWeight Context::read_column(const std::string& cell) {
  const size_t equals = cell.find('=');
  ColumnWeight one;
  one.column = cell.substr(0, equals);
  one.value = cell.substr(equals + 1);
  const size_t dots = one.value.find("..");
  if (dots == std::string::npos) return one;
  one.low = number_of(one.value.substr(0, dots));
  one.high = number_of(one.value.substr(dots + 2));
  one.is_range = (one.low || dots == 0) && (one.high || dots + 2 == one.value.size()) && (one.low || one.high);
  return one;
}

bool Context::ColumnWeight::holds(const base::Json& known) const {
  const base::Json* found = known.is_object() ? known.find(column) : nullptr;
  if (!found || (!found->is_number() && !found->is_string())) return false;
  if (!is_range) return value == (found->is_string() ? found->as_string() : found->dump(-1));
  const auto number = found->is_number() ? std::optional(found->as_double()) : number_of(found->as_string());
  return number && (!low || *number >= *low) && (!high || *number <= *high);
}

std::vector<std::string> Context::columns() const {
  std::set<std::string> names;
  for (const ColumnWeight& one : columns_) names.insert(one.column);
  return {names.begin(), names.end()};
}

std::vector<float> Context::scores(const std::vector<Answer>& answers, const base::Json& columns) const {
  std::vector<double> by_column(num_classes_);
  for (const ColumnWeight& one : columns_) {
    if (one.holds(columns)) by_column[one.label] += one.logarithm;
  }
  std::vector<double> surest(num_classes_);  // by class
  for (const Answer& one : answers) {
    double& most = surest[static_cast<size_t>(one.label)];
    most = std::max(most, static_cast<double>(one.score));
  }
  std::vector<float> changed;
  for (const Answer& one : answers) {
    const auto own = static_cast<size_t>(one.label);
    double shift = by_column[own];
    for (size_t other = 0; other < num_classes_; ++other) {
      if (other != own) shift += surest[other] * logarithms_[own * num_classes_ + other];
    }
    const double score = std::clamp(static_cast<double>(one.score), 1 - kSurest, kSurest);
    changed.push_back(shift == 0 ? one.score : static_cast<float>(1 / (1 + std::exp(-shift) * (1 - score) / score)));
  }
  return changed;
}

}  // namespace lockstep::task
