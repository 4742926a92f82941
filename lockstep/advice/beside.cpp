// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/beside.h"

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Json;
using base::text;

template <class Parse>
double stated(const Json& words, const Parse& parse) {
  try {
    return static_cast<double>(parse(words.as_string()));
  } catch (const base::Error& error) {
    throw base::Error(error.blame(), text(words.where(), ": ", error.what()), error.fix());
  }
}

const forecast::Option& option_on(const planning::Plan& plan, const std::string& label) {
  std::vector<std::string> labels;
  for (const auto& option : plan.options) {
    if (option.as_written && planning::label_of(option) == label) return option;
    if (option.as_written) labels.push_back(planning::label_of(option));
  }
  throw base::Error(base::Blame::user, text("--beside: the plan has no '", label, "'"),
                    base::did_you_mean(label, labels));
}

}  // namespace

Beside read_beside(const base::Path& path) {
  const Json document = base::read_json(path);
  Beside beside;
  beside.source = document.at("source").as_string();
  for (const auto& figure : document.at("figures").items()) {
    Beside::Figure one{figure.at("what").as_string(), figure.at("on").as_string(), 0, 0, figure.string_or("why", "")};
    if (const Json* memory = figure.find("memory")) {
      one.bytes = stated(*memory, [](const std::string& words) { return base::parse_bytes(words); });
    } else {
      one.seconds = stated(figure.at("time"), [](const std::string& words) { return base::parse_duration(words); });
    }
    beside.figures.push_back(std::move(one));
  }
  return beside;
}

void add_beside(const Beside& beside, const planning::Plan& plan, Advice& advice) {
  advice.paper.heading("Their figures beside ours");
  Paper::Grid grid{{{"what"},
                    {"theirs", base::Align::right},
                    {"on"},
                    {"ours", base::Align::right},
                    {"theirs / ours", base::Align::right}},
                   {},
                   text("The job as written; source of theirs: ", beside.source)};
  std::vector<std::string> reasons;
  Json rows = Json::array();
  for (const auto& row : beside.figures) {
    const forecast::Option& option = option_on(plan, row.on);
    const double ours = planning::run_seconds(option);
    const bool ends = option.feasible() && ours > 0;
    grid.rows.push_back({row.what, planning::time_text(row.seconds), row.on,
                         ends ? planning::run_text(option) : "does not fit",
                         ends ? planning::figure(row.seconds / ours) : "-"});
    if (!row.why.empty()) reasons.push_back(text(row.what, ": ", row.why));
    Json entry = Json::object();
    entry["what"] = row.what;
    entry["on"] = row.on;
    entry["theirs_seconds"] = row.seconds;
    entry["ours_seconds"] = ends ? Json(ours) : Json();
    rows.push_back(std::move(entry));
  }
  advice.paper.table(std::move(grid));
  advice.paper.list(std::move(reasons));
  advice.document["beside"] = std::move(rows);
}

void add_memory_beside(const Beside& beside, const std::map<std::string, double>& ours, Advice& advice) {
  advice.paper.heading("Their figures beside ours");
  Paper::Grid grid{{{"what"},
                    {"theirs", base::Align::right},
                    {"job"},
                    {"ours", base::Align::right},
                    {"theirs / ours", base::Align::right}},
                   {},
                   text("Memory of a GPU, the job as written; source of theirs: ", beside.source)};
  std::vector<std::string> reasons;
  std::vector<std::string> jobs;
  for (const auto& [job, bytes] : ours) jobs.push_back(job);
  for (const auto& row : beside.figures) {
    const auto found = ours.find(row.on);
    if (found == ours.end()) {
      throw base::Error(base::Blame::user, text("--beside: there is no job '", row.on, "'"),
                        base::did_you_mean(row.on, jobs));
    }
    grid.rows.push_back({row.what, base::format_bytes(row.bytes), row.on, base::format_bytes(found->second),
                         planning::figure(row.bytes / found->second)});
    if (!row.why.empty()) reasons.push_back(text(row.what, ": ", row.why));
  }
  advice.paper.table(std::move(grid));
  advice.paper.list(std::move(reasons));
}

}  // namespace lockstep::advice
