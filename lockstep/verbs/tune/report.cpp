// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/tune/report.h"

#include <cmath>
#include <numeric>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/tune/importance.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::tune {
namespace {

using base::Json;
using base::text;
using lockstep::tune::Distribution;
using lockstep::tune::Space;
using lockstep::tune::Trial;
using lockstep::tune::Trials;
using lockstep::tune::TrialState;

Json parameters_json(const Space& space) {
  Json all = Json::array();
  for (const auto& parameter : space) {
    Json one = Json::object();
    one["name"] = parameter.name;
    one["log"] = parameter.distribution.log;
    if (parameter.distribution.kind == Distribution::Kind::choice) {
      one["choices"] = Json::array(parameter.distribution.choices);
    } else {
      one["low"] = parameter.distribution.low;
      one["high"] = parameter.distribution.high;
    }
    all.push_back(std::move(one));
  }
  return all;
}

Json trial_json(const Space& space, const Trial& trial) {
  Json one = Json::object();
  one["number"] = trial.number;
  one["state"] = trial.system_attrs.contains("constraints:memory") ? "infeasible"
                 : trial.is_paused()                               ? "paused"
                                                                   : name_of(trial.state);
  const bool complete = trial.state == TrialState::complete && trial.objective;
  one["value"] = complete ? Json(*trial.objective) : Json();
  one["node_hours"] = trial.user_attrs.double_or("node_hours", 0);
  one["planned_node_hours"] = trial.user_attrs.double_or("planned_node_hours", 0);
  one["error"] = trial.user_attrs.string_or("error", trial.user_attrs.string_or("infeasible", ""));
  Json& units = one["units"] = Json::array();  // where its values lie on their axes
  Json& values = one["values"] = Json::array();
  for (const auto& parameter : space) {
    const auto value = trial.values.find(parameter.name);
    const bool there = value != trial.values.end() && parameter.distribution.contains(value->second);
    units.push_back(there ? Json(parameter.distribution.unit_of(value->second)) : Json());
    values.push_back(there ? parameter.distribution.external(value->second) : Json());
  }
  Json& curve = one["curve"] = Json::array();
  for (const auto& [step, value] : trial.intermediate) {
    if (std::isfinite(value)) curve.push_back(Json::array({Json(step), Json(value)}));
  }
  return one;
}

// Of all trials, whether drawn or not.
Json counts_json(const lockstep::tune::StudyResult& result) {
  Json counts = Json::object();
  counts["complete"] = result.complete;
  counts["pruned"] = result.pruned;
  counts["infeasible"] = result.infeasible;
  counts["failed"] = result.failed;
  counts["running"] = result.running;
  counts["paused"] = result.paused;
  return counts;
}

// The trials before the first that is drawn: how many, what they cost, the best value among them.
Json before_json(const Trials& trials, size_t first) {
  const std::vector<Trial> older(trials.all().begin(), trials.all().begin() + static_cast<long>(first));
  const Trial* best = lockstep::tune::best_of(older, trials.maximize());
  Json before = Json::object();
  before["trials"] = static_cast<int64_t>(first);
  before["node_hours"] = std::accumulate(older.begin(), older.end(), 0.0, [](double sum, const Trial& trial) {
    return sum + trial.user_attrs.double_or("node_hours", 0);
  });
  before["best"] = best ? Json(*best->objective) : Json();
  return before;
}

}  // namespace

Json gather_study(const spec::Study& study, const Space& space, const Trials& trials) {
  constexpr size_t kMost = 2000;  // drawn, the newest; the best is always among them
  Json data = Json::object();
  data["name"] = study.name;
  data["sampler"] = name_of(study.sampler);
  data["scheduler"] = name_of(study.scheduler);
  data["objective"] = study.objective;
  data["maximize"] = trials.maximize();
  data["wanted"] = study.trials;
  data["budget_node_hours"] = study.budget.node_hours;
  data["price"] = study.budget.price;
  data["parameters"] = parameters_json(space);
  const auto result = lockstep::tune::summarise(trials);
  data["node_hours"] = result.node_hours;
  data["best"] = result.best ? Json(result.best->number) : Json();
  int64_t paid = 0;
  for (const auto& trial : trials.all()) paid += trial.user_attrs.double_or("node_hours", 0) > 0 ? 1 : 0;
  data["next_node_hours"] = paid > 0 ? Json(result.node_hours / static_cast<double>(paid)) : Json();
  data["counts"] = counts_json(result);
  const size_t first = trials.all().size() > kMost ? trials.all().size() - kMost : 0;
  data["before"] = before_json(trials, first);
  Json& rows = data["trials"] = Json::array();
  for (size_t i = 0; i < trials.all().size(); ++i) {
    const bool best = result.best && result.best->id == trials.all()[i].id;
    if (i >= first || best) rows.push_back(trial_json(space, trials.all()[i]));
  }
  Json& shares = data["importance"] = Json::array();
  for (const auto& [name, share] : lockstep::tune::importances(space, trials.all(), trials.maximize())) {
    Json one = Json::object();
    one["name"] = name;
    one["share"] = share;
    shares.push_back(std::move(one));
  }
  return data;
}

std::string render_study(const Json& data) {
  return web::render_page("tune", data.at("name").as_string(), data);
}

Json gather_partition(const spec::Study& study, const Space& space, const lockstep::tune::Partitioned& partitioned) {
  constexpr size_t kMostPoints = 1500;
  Json data = Json::object();
  data["name"] = study.name;
  data["parameters"] = parameters_json(space);
  data["evaluations"] = partitioned.evaluations;
  data["failures"] = partitioned.failures;
  data["confidence"] = partitioned.confidence;
  data["found_volume_95"] = partitioned.found_volume(0.95);
  Json& missed = data["missed"] = Json::array();
  for (const double volume : {1e-2, 1e-3, 1e-4, 1e-5}) {
    Json one = Json::object();
    one["volume"] = volume;
    one["probability"] = partitioned.missed(volume);
    missed.push_back(std::move(one));
  }
  Json& regions = data["regions"] = Json::array();
  for (const auto& region : partitioned.regions) {
    Json one = Json::object();
    one["label"] = region.label;
    one["volume"] = region.volume;
    one["low"] = region.low;
    one["high"] = region.high;
    one["published"] = region.published;
    Json& centre = one["centre"] = Json::array();
    Json& spread = one["spread"] = Json::array();
    for (size_t i = 0; i < space.size(); ++i) {
      centre.push_back(space[i].distribution.external(space[i].distribution.at(region.centre[i])));
      spread.push_back(region.spread[i]);
    }
    regions.push_back(std::move(one));
  }
  Json& points = data["points"] = Json::array();
  for (size_t i = 0; i < std::min(kMostPoints, partitioned.sample.size()); ++i) {
    Json one = Json::array_of(partitioned.sample[i].first);
    one.push_back(partitioned.sample[i].second);
    points.push_back(std::move(one));
  }
  return data;
}

std::string partition_text(const Json& data) {
  std::vector<base::Column> columns{{"region"}, {"volume", base::Align::right}, {"interval", base::Align::right}};
  for (const auto& parameter : data.at("parameters").items()) {
    columns.push_back({parameter.at("name").as_string(), base::Align::right});
  }
  base::Table table(columns);
  for (const auto& region : data.at("regions").items()) {
    std::vector<std::string> row{
        region.at("label").as_string(), base::percent(region.at("volume").as_double(), 3),
        text(base::percent(region.at("low").as_double(), 3), " to ", base::percent(region.at("high").as_double(), 3))};
    for (const auto& one : region.at("centre").items()) {
      row.push_back(one.is_number() && !one.is_integer() ? base::fixed(one.as_double(), 4) : one.dump(-1));
    }
    table.add(row);
  }
  std::string words =
      text(data.at("regions").size(), " regions, ", base::format_count(data.at("evaluations").as_int()),
           " evaluations; the intervals hold together with ", base::percent(data.at("confidence").as_double(), 0),
           "; in the columns of the parameters: the centre\n", table.to_text());
  words += text("a region of ", base::percent(data.at("found_volume_95").as_double(), 4),
                " of the space or more would have been found with 95 %; missed would be one of");
  for (const auto& one : data.at("missed").items()) {
    words +=
        text(" ", base::percent(one.at("volume").as_double(), 3), " with ",
             base::percent(one.at("probability").as_double(), 2), one.at("volume").as_double() > 1e-5 ? "," : "\n");
  }
  if (const int64_t failures = data.at("failures").as_int(); failures > 0) {
    words += text(failures, " points gave no label; they count to no region\n");
  }
  return words;
}

std::string render_partition(const Json& data) {
  return web::render_page("partition", data.at("name").as_string(), data);
}

}  // namespace lockstep::verbs::tune
