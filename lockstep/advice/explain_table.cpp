// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_table.h"

#include <algorithm>

#include "lockstep/advice/explain_rates.h"
#include "lockstep/advice/explain_reading.h"
#include "lockstep/advice/planned_rows.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;

void explain_workflow(const MeasuredWorkflow& workflow, Paper& paper, Json& document) {
  double total = 0;
  double scaled = 0;
  for (const auto& phase : workflow.phases) {
    total += phase.hours;
    if (phase.name == workflow.scaled) scaled += phase.hours;
  }
  paper.heading(workflow.title);
  Paper::Grid phases{{{"phase"}, {"hours", Align::right}, {"share", Align::right}}, {}, ""};
  for (const auto& phase : workflow.phases) {
    phases.rows.push_back({phase.name, planning::figure(phase.hours), base::percent(phase.hours / total, 1)});
  }
  phases.rows.push_back({"in all", planning::figure(total), ""});
  paper.table(std::move(phases));
  const double share = workflow.stated_share > 0 ? workflow.stated_share : scaled / total;
  Paper::Grid sums{{{text(workflow.scaled, " faster by")},
                    {"factor", Align::right},
                    {"time that remains", Align::right},
                    {"sum"},
                    {"the whole is faster by", Align::right}},
                   {},
                   ""};
  Json rows = Json::array();
  for (const auto& one : workflow.speed_ups) {
    const double left = forecast::remaining_time(share, one.factor);
    sums.rows.push_back(
        {one.name, base::fixed(one.factor, 2), base::percent(left, 2),
         text(base::percent(share, 1), " / ", base::fixed(one.factor, 2), " + ", base::percent(1 - share, 1)),
         base::fixed(1 / left, 2)});
    Json row = Json::object();
    row["name"] = one.name;
    row["factor"] = one.factor;
    row["remaining"] = left;
    rows.push_back(std::move(row));
  }
  paper.table(std::move(sums));
  Json entry = Json::object();
  entry["title"] = workflow.title;
  entry["share"] = share;
  entry["speed_ups"] = std::move(rows);
  document["workflows"].push_back(std::move(entry));
}

}  // namespace

Advice explain_measured(const Measured& measured, const catalogue::Catalogue& catalogue) {
  Advice advice;
  Paper& paper = advice.paper;
  Json& document = advice.document;
  document = Json::object();
  document["kind"] = "advice";
  document["advice"] = "table";
  document["tables"] = Json::array();
  document["workflows"] = Json::array();
  paper.title = measured.title;
  std::vector<std::string> told;
  for (const auto& table : measured.tables) {
    if (table.gpu.empty() || std::find(told.begin(), told.end(), table.gpu) != told.end()) continue;
    told.push_back(table.gpu);
    const auto& gpu = catalogue.gpu(table.gpu);
    if (gpu.planning_only()) {
      paper.say(
          text(gpu.id, ": no current CUDA drives it (last: ", gpu.last_cuda.value_or("none"), "); planned only."));
    }
  }
  paper.say(text("Source: ", measured.source, "."));
  if (!measured.notes.empty()) paper.list(measured.notes);
  for (const auto& table : measured.tables) {
    document["tables"].push_back(table.epochs > 0 ? explain_reading(table, catalogue, paper)
                                                  : explain_rates(table, catalogue, paper));
  }
  for (const auto& workflow : measured.workflows) explain_workflow(workflow, paper, document);
  return advice;
}

Advice advise_table(const AdviceRequest& request) {
  const base::Path file = request.arguments.only("table document");
  Measured measured = parse_measured(base::read_json(file));
  for (auto& table : measured.tables) plan_rows(table, file.parent_path(), request);
  return explain_measured(measured, request.catalogue);
}

}  // namespace lockstep::advice
