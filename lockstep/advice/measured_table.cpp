// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/measured_table.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/renamed.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

void check_keys(const Json& object, const std::vector<std::string>& known) {
  for (const auto& member : object.members()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const auto now = base::new_key_name(member.key);
    throw Error(Blame::user, text(object.where(), ": unknown key '", member.key, "'"),
                now ? text("it is called '", *now, "' now: docs/formats/measured_table.md")
                    : base::did_you_mean(member.key, known));
  }
}

double not_negative(const Json& value) {
  const double number = value.as_double();
  if (number >= 0) return number;
  throw Error(Blame::user, text(value.where(), ": ", number, " is below 0"), "leave it out when it is not known");
}

// 12, or [26, 30] for a range; 0 and 0 when absent.
std::pair<double, double> range_of(const Json& row, const char* key) {
  const Json* value = row.find(key);
  if (!value) return {0, 0};
  if (!value->is_array()) return {not_negative(*value), not_negative(*value)};
  if (value->size() != 2 || value->items()[0].as_double() > value->items()[1].as_double()) {
    throw Error(Blame::user, text(value->where(), ": a range has two numbers, the smaller one first"), "[26, 30]");
  }
  return {not_negative(value->items()[0]), not_negative(value->items()[1])};
}

forecast::ScalingRow row_of(const Json& object, bool read) {
  check_keys(object, {"gpus", "nodes", "batch", "steps", "hours", "rate", "samples", "efficiency_low",
                      "efficiency_high", "hidden", "planned_rate", "planned_hours", "score"});
  forecast::ScalingRow row;
  row.gpus = object.at("gpus").as_int();
  row.nodes = object.int_or("nodes", 0);
  row.batch = object.double_or("batch", 0);
  row.steps = object.double_or("steps", 0);
  row.rate = object.double_or("rate", 0);
  std::tie(row.low_hours, row.high_hours) = range_of(object, "hours");
  std::tie(row.low_samples, row.high_samples) = range_of(object, "samples");
  if (row.gpus < 1) throw Error(Blame::user, text(object.where(), ": gpus must be 1 or more"), "\"gpus\": 1");
  if (read && (row.hours() <= 0 || row.batch <= 0 || row.samples() <= 0)) {
    throw Error(Blame::user, text(object.where(), ": a row of a table with epochs needs batch, hours and samples"),
                "\"batch\": 1000, \"hours\": [13, 16], \"samples\": [1000, 4000]");
  }
  const bool steps = row.steps > 0 && row.hours() > 0 && row.batch > 0;
  if (!read && row.rate <= 0 && !steps) {
    throw Error(Blame::user, text(object.where(), ": a row needs a rate, or steps, batch and hours"), "\"rate\": 7.93");
  }
  return row;
}

MeasuredTable::Figures figures_of(const Json& row) {
  const auto figure = [&](const char* key) {
    const Json* value = row.find(key);
    return value ? std::optional(not_negative(*value)) : std::nullopt;
  };
  return {figure("efficiency_low"),  figure("efficiency_high"), figure("hidden"),
          figure("planned_rate"),    figure("planned_hours"),   "",
          row.string_or("score", "")};
}

MeasuredTable table_of(const Json& object) {
  check_keys(object,
             {"title", "gpu", "job", "epochs", "gpu_batch", "walltime_h", "rows", "elsewhere", "reference", "network"});
  MeasuredTable table;
  table.title = object.at("title").as_string();
  table.gpu = object.string_or("gpu", "");
  table.job = object.string_or("job", "");
  table.epochs = object.double_or("epochs", 0);
  table.gpu_batch = object.int_or("gpu_batch", table.gpu_batch);
  if (table.gpu_batch < 1)
    throw Error(Blame::user, text(object.where(), ": gpu_batch must be 1 or more"), "\"gpu_batch\": 1");
  table.walltime_h = object.double_or("walltime_h", 0);
  for (const auto& row : object.at("rows").items()) {
    table.rows.push_back(row_of(row, table.epochs > 0));
    table.figures.push_back(figures_of(row));
  }
  if (table.rows.empty()) throw Error(Blame::user, text(object.where(), ": a table without rows"), "\"rows\": [...]");
  if (const Json* list = object.find("elsewhere")) {
    for (const auto& one : list->items()) {
      check_keys(one, {"name", "rate", "precision", "source"});
      table.elsewhere.push_back({one.at("name").as_string(), one.at("rate").as_double(), one.string_or("precision", ""),
                                 one.at("source").as_string()});
    }
  }
  if (const Json* one = object.find("reference")) {
    check_keys(*one, {"gpu", "rate", "source"});
    table.reference = {one->at("gpu").as_string(), one->at("rate").as_double(), one->at("source").as_string()};
  }
  if (const Json* one = object.find("network")) {
    check_keys(*one, {"gradient", "per_node", "inter_rate", "note"});
    const bool traced = !table.job.empty() && !one->contains("gradient");
    table.network = {traced ? 0 : static_cast<double>(base::parse_bytes(one->at("gradient").as_string())),
                     one->int_or("per_node", 1), base::parse_rate(one->at("inter_rate").as_string()),
                     one->string_or("note", "")};
  }
  return table;
}

MeasuredWorkflow workflow_of(const Json& object) {
  check_keys(object, {"title", "phases", "scaled", "stated_share", "speed_ups"});
  MeasuredWorkflow workflow;
  workflow.title = object.at("title").as_string();
  workflow.scaled = object.at("scaled").as_string();
  workflow.stated_share = object.double_or("stated_share", 0);
  std::vector<std::string> names;
  for (const auto& phase : object.at("phases").items()) {
    workflow.phases.push_back({phase.at("name").as_string(), not_negative(phase.at("hours"))});
    names.push_back(workflow.phases.back().name);
  }
  if (std::find(names.begin(), names.end(), workflow.scaled) == names.end()) {
    throw Error(Blame::user, text(object.at("scaled").where(), ": no phase is called '", workflow.scaled, "'"),
                base::did_you_mean(workflow.scaled, names));
  }
  for (const auto& one : object.at("speed_ups").items()) {
    check_keys(one, {"name", "rate", "from", "gpus", "efficiency"});
    const bool rates = one.contains("rate");
    const double factor = rates ? one.at("rate").as_double() / one.at("from").as_double()
                                : one.at("gpus").as_double() * one.at("efficiency").as_double();
    if (!(factor > 0)) throw Error(Blame::user, text(one.where(), ": a speed-up is above 0"), "\"rate\", \"from\"");
    workflow.speed_ups.push_back({one.at("name").as_string(), factor});
  }
  return workflow;
}

}  // namespace

Measured parse_measured(const Json& document) {
  check_keys(document, {"title", "source", "notes", "tables", "workflows"});
  Measured measured;
  measured.title = document.at("title").as_string();
  measured.source = document.at("source").as_string();
  if (const Json* notes = document.find("notes")) {
    for (const auto& note : notes->items()) measured.notes.push_back(note.as_string());
  }
  for (const auto& table : document.at("tables").items()) measured.tables.push_back(table_of(table));
  if (const Json* workflows = document.find("workflows")) {
    for (const auto& one : workflows->items()) measured.workflows.push_back(workflow_of(one));
  }
  return measured;
}

}  // namespace lockstep::advice
