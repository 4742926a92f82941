// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/figures.h"

#include <algorithm>
#include <map>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/trust/bootstrap.h"
#include "lockstep/trust/label_errors.h"
#include "lockstep/trust/reliability.h"
#include "lockstep/trust/selective.h"

namespace lockstep::trust {
namespace {

using base::Align;
using base::fixed;
using base::Json;
using base::percent;
using base::text;

constexpr double kShownCoverages[] = {0.9, 0.95, 0.99};
constexpr double kIntervalLevel = 0.99;  // of the coverage that was found: two or three are looked at

std::vector<double> hits_of(const std::vector<Answer>& all) {
  std::vector<double> hits;
  hits.reserve(all.size());
  for (const auto& answer : all) hits.push_back(answer.right ? 1 : 0);
  return hits;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Json set_figures(const ClassRows& rows, const Calibration& calibration, double coverage, SetMethod method) {
  int64_t held = 0, size = 0, single = 0;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto chosen = calibration.set_for(rows.row(i), coverage, method);
    held += std::find(chosen.begin(), chosen.end(), rows.labels[static_cast<size_t>(i)]) != chosen.end() ? 1 : 0;
    size += static_cast<int64_t>(chosen.size());
    single += chosen.size() == 1 ? 1 : 0;
  }
  const auto count = static_cast<double>(rows.size());
  const Interval expected = coverage_interval(calibration.threshold_rows(), rows.size(), coverage, kIntervalLevel);
  Json row = Json::object();
  row["method"] = method == SetMethod::lac ? "lac" : "aps";
  row["coverage"] = coverage;
  row["found"] = static_cast<double>(held) / count;
  row["low"] = expected.low;
  row["high"] = expected.high;
  row["size"] = static_cast<double>(size) / count;
  row["single"] = static_cast<double>(single) / count;
  return row;
}

}  // namespace

Json trust_figures(const ClassRows& rows, const std::optional<Calibration>& calibration) {
  const double temperature = calibration ? calibration->temperature : 1;
  const auto all = answers(rows, temperature);
  const auto hits = hits_of(all);
  const Interval top1 = bootstrap_mean(hits);
  Json result = Json::object();
  result["rows"] = rows.size();
  if (rows.nonfinite > 0) result["nonfinite"] = rows.nonfinite;
  result["top1"]["value"] = mean_of(hits);
  result["top1"]["low"] = top1.low;
  result["top1"]["high"] = top1.high;
  result["raw"] = reliability(rows).to_json();
  result["risk_coverage"] = risk_coverage(all).to_json();
  if (!calibration) return result;
  result["temperature"] = temperature;
  result["calibrated"] = reliability(rows, temperature).to_json();
  Json& sets = result["sets"] = Json::array();
  for (const SetMethod method : {SetMethod::lac, SetMethod::aps}) {
    for (const double coverage : kShownCoverages) {
      if (fewest_rows(coverage) > calibration->threshold_rows()) continue;
      sets.push_back(set_figures(rows, *calibration, coverage, method));
    }
  }
  return result;
}

Json label_figures(const ClassRows& rows, double temperature, const std::vector<std::string>& classes, size_t most) {
  const auto found = label_candidates(rows, temperature);
  Json result = Json::object();
  result["found"] = found.size();
  Json& shown = result["shown"] = Json::array();
  for (size_t i = 0; i < std::min(most, found.size()); ++i) {
    Json row = Json::object();
    row["sample"] = rows.ids[static_cast<size_t>(found[i].row)];
    row["given"] = classes[static_cast<size_t>(found[i].given)];
    row["suggested"] = classes[static_cast<size_t>(found[i].suggested)];
    row["score"] = found[i].score;
    shown.push_back(std::move(row));
  }
  return result;
}

Json group_figures(const ClassRows& rows, const std::vector<std::string>& values) {
  const auto all = answers(rows);
  std::map<std::string, std::vector<double>> hits;
  for (size_t i = 0; i < all.size(); ++i) hits[values[i]].push_back(all[i].right ? 1 : 0);
  std::vector<Json> groups;
  for (const auto& [value, own] : hits) {
    const Interval interval = bootstrap_mean(own);
    Json row = Json::object();
    row["value"] = value;
    row["samples"] = own.size();
    row["top1"] = mean_of(own);
    row["low"] = interval.low;
    row["high"] = interval.high;
    groups.push_back(std::move(row));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Json& a, const Json& b) { return a.at("top1").as_double() < b.at("top1").as_double(); });
  return Json::array(std::move(groups));
}

std::string trust_text(const Json& figures) {
  const auto error = [&](const char* key, const char* member) { return figures.at(key).at(member).as_double(); };
  const Json& top1 = figures.at("top1");
  std::string out = text("\nhow far to trust it, on ", figures.at("rows").as_int(), " images\n  top-1 ",
                         percent(top1.at("value").as_double(), 2), ", 95 % interval ",
                         percent(top1.at("low").as_double(), 2), " to ", percent(top1.at("high").as_double(), 2), "\n");
  base::Table table(
      {{""}, {"ECE", Align::right}, {"Brier", Align::right}, {"NLL", Align::right}, {"mean confidence", Align::right}});
  for (const char* key : {"raw", "calibrated"}) {
    if (!figures.contains(key)) continue;
    const std::string name = key[0] == 'r' ? "as the network says"
                                           : text("at temperature ", fixed(figures.at("temperature").as_double(), 3));
    table.add({name, fixed(error(key, "ece"), 4), fixed(error(key, "brier"), 4), fixed(error(key, "nll"), 4),
               percent(error(key, "confidence"), 2)});
  }
  out += table.to_text();
  if (const Json* sets = figures.find("sets"); sets && sets->size() > 0) {
    base::Table shown({{"sets", Align::left},
                       {"asked", Align::right},
                       {"found", Align::right},
                       {"99 % of calibrations", Align::right},
                       {"classes", Align::right},
                       {"of one class", Align::right}});
    for (const auto& row : sets->items()) {
      shown.add({row.at("method").as_string(), percent(row.at("coverage").as_double(), 0),
                 percent(row.at("found").as_double()),
                 text(percent(row.at("low").as_double()), " to ", percent(row.at("high").as_double())),
                 fixed(row.at("size").as_double(), 2), percent(row.at("single").as_double())});
    }
    out += "\n" + shown.to_text();
  }
  const Json& risk = figures.at("risk_coverage");
  out += text("\n  area under the risk-coverage curve ", fixed(risk.at("aurc").as_double(), 5), ", at best ",
              fixed(risk.at("best_aurc").as_double(), 5), "\n");
  return out;
}

std::string groups_text(const Json& groups, const std::string& column) {
  base::Table table({{column}, {"images", Align::right}, {"top-1", Align::right}, {"95 % interval", Align::right}});
  for (const auto& row : groups.items()) {
    table.add({row.at("value").as_string(), std::to_string(row.at("samples").as_int()),
               percent(row.at("top1").as_double(), 2),
               text(percent(row.at("low").as_double(), 2), " to ", percent(row.at("high").as_double(), 2))});
  }
  return "\n" + table.to_text();
}

}  // namespace lockstep::trust
