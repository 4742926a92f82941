// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/compare.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"
#include "lockstep/spec/job.h"

namespace lockstep::watching {
namespace {

using base::Json;
using base::text;

// What decides the bits of a run besides its job, and what it was computed with.
constexpr const char* kCircumstances[] = {"ranks",  "threads",  "device", "cpu",           "host",
                                          "commit", "libtorch", "task",   "train_samples", "data_sha256"};
constexpr const char* kNoFigures[] = {"v", "t", "step", "epoch", "samples", "seconds"};  // of an evaluation

// The values of a document by their whole keys, in their order: "training.optimizer.lr". A list is one value.
void flatten(const Json& document, const std::string& prefix, Json& flat) {
  for (const auto& member : document.members()) {
    const std::string key = prefix.empty() ? member.key : text(prefix, ".", member.key);
    if (member.value.is_object() && member.value.size() > 0) {
      flatten(member.value, key, flat);
    } else {
      flat[key] = member.value;
    }
  }
}

Json flat_job(const Json& job) {
  Json flat = Json::object();
  flatten(job, "", flat);
  return flat;
}

// Rows for every key that one of the objects has; `otherwise` has the values of those that one does not.
std::vector<Row> rows_of(const std::vector<Json>& objects, const Json& otherwise = Json::object()) {
  std::vector<Row> rows;
  for (const Json& object : objects) {
    for (const auto& member : object.members()) {
      if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.name == member.key; })) continue;
      Row row{member.key, {}};
      for (const Json& each : objects) {
        const Json* value = each.find(member.key);
        if (!value) value = otherwise.find(member.key);
        row.values.push_back(value ? *value : Json());
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Row> that_differ(std::vector<Row> rows) {
  std::erase_if(rows, [](const Row& row) {
    return std::adjacent_find(row.values.begin(), row.values.end(), std::not_equal_to<>()) == row.values.end();
  });
  return rows;
}

const Json* last_named(const std::vector<Json>& events, std::string_view name) {
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [&](const Json& line) { return line.at("event").as_string() == name; });
  return found == events.rend() ? nullptr : &*found;
}

Json circumstances_of(const std::vector<Json>& events) {
  Json found = Json::object();
  for (const Json& line : events) {  // each session says it; the last one counts
    const std::string& event = line.at("event").as_string();
    if (event != "start" && event != "resume") continue;
    for (const char* key : kCircumstances) {
      if (const Json* value = line.find(key)) found[key] = *value;
    }
  }
  return found;
}

// The best headline of the run's validations, and its step; of equals the later, as training keeps it.
void add_best(const std::vector<Json>& events, Json& figures) {
  const Json* best = nullptr;
  int64_t step = 0;
  for (const Json& line : events) {
    if (line.at("event").as_string() != "evaluate" || line.string_or("split", "") != "validate") continue;
    const Json* headline = line.find("headline");
    if (!headline || !headline->is_object() || !headline->at("value").is_number()) continue;
    const double value = headline->at("value").as_double();
    const bool higher = headline->at("higher_is_better").as_bool();
    if (best && (higher ? value < best->as_double() : value > best->as_double())) continue;
    best = &headline->at("value");
    step = line.int_or("step", 0);
    figures[text("best ", headline->at("name").as_string())] = *best;
  }
  if (best) figures["best at step"] = step;
}

Json figures_of(const std::vector<Json>& events) {
  Json figures = Json::object();
  double samples = 0, seconds = 0;
  int64_t step = 0;
  for (const Json& line : events) {
    if (line.at("event").as_string() != "step") continue;
    step = std::max(step, line.int_or("step", 0));
    samples += line.double_or("samples", 0);
    seconds += line.double_or("seconds", 0);
  }
  figures["steps"] = step;
  if (const Json* start = last_named(events, "start")) {
    if (const Json* total = start->find("total_steps")) figures["total steps"] = *total;
  }
  if (const Json* epoch = last_named(events, "epoch")) {
    if (const Json* loss = epoch->find("loss")) figures["training loss"] = *loss;
  }
  if (const Json* evaluation = last_named(events, "evaluate")) {
    for (const auto& member : evaluation->members()) {
      const bool is_figure = std::none_of(std::begin(kNoFigures), std::end(kNoFigures),
                                          [&](const char* key) { return member.key == key; });
      if (is_figure && member.value.is_number()) {
        figures[text(evaluation->string_or("split", "validate"), " ", member.key)] = member.value;
      }
    }
  }
  add_best(events, figures);
  if (seconds > 0) figures["samples per second"] = samples / seconds;
  figures["seconds of steps"] = seconds;
  const Json* end = last_named(events, "end");
  if (const Json* hash = end ? end->find("weights_sha256") : nullptr) figures["weights_sha256"] = *hash;
  return figures;
}

std::string cell(const std::string& name, const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string() && name.ends_with("sha256")) return value.as_string().substr(0, 12);
  if (value.is_string()) return value.as_string().empty() ? "\"\"" : value.as_string();
  return value.dump(-1);
}

std::string figure_cell(const std::string& name, const Json& value) {
  if (!value.is_number() || value.is_integer()) return cell(name, value);
  return base::fixed(value.as_double(), 4);
}

std::string table_text(const std::string& title, const std::vector<std::string>& runs, const std::vector<Row>& rows,
                       const std::function<std::string(const std::string&, const Json&)>& show) {
  std::vector<base::Column> columns;
  columns.push_back({title});
  for (const std::string& run : runs) columns.push_back({run});
  base::Table table(std::move(columns));
  for (const Row& row : rows) {
    std::vector<std::string> cells{row.name};
    for (const Json& value : row.values) cells.push_back(show(row.name, value));
    table.add(std::move(cells));
  }
  return table.to_text(0);
}

Json rows_json(const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json one = Json::object();
    one["name"] = row.name;
    one["values"] = Json::array(row.values);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Differences compare_runs(const std::vector<run::RunPaths>& runs) {
  Differences differences;
  std::vector<Json> jobs, circumstances, figures;
  for (const run::RunPaths& paths : runs) {
    differences.runs.push_back(paths.root.string());
    jobs.push_back(flat_job(base::read_json(paths.job())));
    const std::vector<Json> events = run::read_journal(paths.journal()).effective();
    circumstances.push_back(circumstances_of(events));
    figures.push_back(figures_of(events));
  }
  differences.settings = that_differ(rows_of(jobs, flat_job(spec::to_json(spec::Job{}))));
  differences.circumstances = that_differ(rows_of(circumstances));
  differences.figures = rows_of(figures);
  return differences;
}

Json to_json(const Differences& differences) {
  Json all = Json::object();
  all["runs"] = Json::array_of(differences.runs);
  all["settings"] = rows_json(differences.settings);
  all["circumstances"] = rows_json(differences.circumstances);
  all["figures"] = rows_json(differences.figures);
  return all;
}

std::string to_text(const Differences& differences) {
  const auto part = [&](const std::string& title, const std::vector<Row>& rows) {
    return rows.empty() ? text(title, ": the same\n") : table_text(title, differences.runs, rows, cell);
  };
  return text(part("settings", differences.settings), "\n", part("circumstances", differences.circumstances), "\n",
              table_text("figures", differences.runs, differences.figures, figure_cell));
}

}  // namespace lockstep::watching
