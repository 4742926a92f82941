// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_rates.h"

#include <algorithm>
#include <cmath>

#include "lockstep/advice/measured_columns.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;
using forecast::ScalingRow;

// The table's rate where it states one; else from its steps.
double best_rate(const ScalingRow& row) {
  return row.rate > 0 ? row.rate : forecast::rate_from_steps(row);
}

bool has_steps(const ScalingRow& row) {
  return row.steps > 0 && row.batch > 0 && row.hours() > 0;
}

std::string kind_of_scaling(const std::vector<ScalingRow>& rows) {
  const auto all = [&](const auto& same) { return std::all_of(rows.begin(), rows.end(), same); };
  const ScalingRow& first = rows.front();
  if (first.batch <= 0 || rows.size() < 2) return "";
  const ScalingRow& last = rows.back();
  if (all([&](const ScalingRow& row) { return row.batch == first.batch; })) {
    return text("Weak scaling: each GPU takes ", first.batch, " samples, so the batch of a step grows from ",
                first.batch * static_cast<double>(first.gpus), " to ", last.batch * static_cast<double>(last.gpus),
                has_steps(first) && last.steps > 0
                    ? text(", and the steps shrink from ", base::format_count(std::llround(first.steps)), " to ",
                           base::format_count(std::llround(last.steps)), ": as many samples are shown")
                    : "",
                ".");
  }
  const double global = first.batch * static_cast<double>(first.gpus);
  const bool strong = all([&](const ScalingRow& row) { return row.batch * static_cast<double>(row.gpus) == global; });
  return strong ? text("Strong scaling: the batch of a step stays ", global, ".")
                : "Neither weak nor strong scaling: the batch of a GPU and of a step both change.";
}

// Seconds of one all-reduce of the gradient, and the efficiency when nothing of it hides behind computing.
struct Exchange {
  double seconds = 0;
  double efficiency = 1;
};
Exchange exchange_of(const MeasuredTable& table, const ScalingRow& row, const catalogue::Gpu& gpu) {
  if (row.gpus == 1) return {};
  const int64_t per_node = std::min(table.network.per_node, row.gpus);
  const auto network = forecast::derive_network(gpu, row.gpus, per_node, table.network.inter_rate);
  Exchange exchange;
  exchange.seconds =
      forecast::collective_seconds(forecast::CollectiveKind::all_reduce, table.network.gradient_bytes, network);
  const ScalingRow& first = table.rows.front();
  const double step = row.batch * static_cast<double>(first.gpus) / best_rate(first);
  exchange.efficiency = step / (step + exchange.seconds);
  return exchange;
}

std::string or_dash(double value, int digits) {
  return value > 0 ? base::fixed(value, digits) : "-";
}

void tell_differences(const MeasuredTable& table, Paper& paper) {
  std::vector<std::string> lines;
  for (const auto& row : table.rows) {
    if (!has_steps(row) || row.rate <= 0) continue;
    const double ratio = row.rate / forecast::rate_from_steps(row);
    if (std::abs(ratio - 1) < 0.005) continue;
    lines.push_back(text(row.gpus, " GPUs: the stated ", row.rate, " samples/s are ",
                         base::percent(std::abs(ratio - 1), 1), ratio > 1 ? " more" : " less",
                         " than its own steps and hours give (", base::fixed(forecast::rate_from_steps(row), 2),
                         "): the rate was taken without what else the hours hold, or the hours are rounded"));
  }
  if (!lines.empty()) paper.list(std::move(lines));
}

}  // namespace

Json explain_rates(const MeasuredTable& table, const catalogue::Catalogue& catalogue, Paper& paper) {
  paper.heading(table.title);
  const std::string kind = kind_of_scaling(table.rows);
  if (!kind.empty()) paper.say(kind);
  const bool modelled = table.network.gradient_bytes > 0 && !table.gpu.empty() && table.rows.front().batch > 0;
  Paper::Grid grid{{{"GPUs", Align::right},
                    {"batch of a GPU", Align::right},
                    {"steps", Align::right},
                    {"hours", Align::right},
                    {"samples/s", Align::right},
                    {"from steps and hours", Align::right},
                    {"times faster", Align::right},
                    {"efficiency", Align::right}},
                   {},
                   ""};
  if (modelled) {
    grid.columns.push_back({"all-reduce, forecast", Align::right});
    grid.columns.push_back({"efficiency, forecast", Align::right});
  }
  const ScalingRow& first = table.rows.front();
  Json rows = Json::array();
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const ScalingRow& row = table.rows[i];
    const double rate = best_rate(row);
    const double efficiency = forecast::scaling_efficiency(rate, row.gpus, best_rate(first), first.gpus);
    std::vector<std::string> cells{text(row.gpus),
                                   row.batch > 0 ? text(row.batch) : "-",
                                   row.steps > 0 ? base::format_count(std::llround(row.steps)) : "-",
                                   or_dash(row.hours(), 2),
                                   base::fixed(rate, 2),
                                   has_steps(row) ? base::fixed(forecast::rate_from_steps(row), 2) : "-",
                                   base::fixed(rate / best_rate(first), 2),
                                   base::fixed(efficiency, 3)};
    Json entry = Json::object();
    entry["gpus"] = row.gpus;
    entry["rate"] = rate;
    entry["efficiency"] = efficiency;
    if (modelled) {
      const Exchange exchange = exchange_of(table, row, catalogue.gpu(table.gpu));
      cells.push_back(exchange.seconds > 0 ? base::format_duration(exchange.seconds) : "-");
      cells.push_back(row.gpus == first.gpus ? "1" : text(base::fixed(exchange.efficiency, 3), " to 1"));
      entry["forecast_efficiency"] = exchange.efficiency;
    }
    if (i < table.figures.size() && table.figures[i].planned_rate)
      entry["planned_rate"] = *table.figures[i].planned_rate;
    grid.rows.push_back(std::move(cells));
    rows.push_back(std::move(entry));
  }
  add_measured_columns(table, grid);
  paper.table(std::move(grid));
  tell_differences(table, paper);
  if (modelled) {
    paper.say(text("Forecast: one all-reduce of ", base::format_bytes(table.network.gradient_bytes), " of gradients, ",
                   table.network.per_node, " GPU to a node, ", base::format_rate(table.network.inter_rate),
                   " between nodes; from nothing of it hidden behind the backward pass to all of it. ",
                   table.network.note));
  }
  if (!table.planned_network.empty()) {
    paper.say(text("Planned: the step of ", table.planned_network, " as this program runs it, traced and forecast for ",
                   table.gpu, " with its own exchange of gradients; input and validation are not counted."));
  }
  Json document = Json::object();
  document["title"] = table.title;
  document["rows"] = std::move(rows);
  return document;
}

}  // namespace lockstep::advice
