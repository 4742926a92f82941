// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/explain_reading.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/wording.h"

namespace lockstep::advice {
namespace {

using base::Align;
using base::Json;
using base::text;
using forecast::Reading;
using forecast::ReadingFit;
using forecast::ScalingRow;

constexpr double kSecondsOfAnHour = 3600;

const char* meaning_of(Reading reading) {
  switch (reading) {
    case Reading::global_batch:
      return "samples of a step: an epoch shows the whole dataset";
    case Reading::images_per_epoch:
      return "samples that an epoch shows, whatever the dataset";
    default:
      return "steps of an epoch, one sample on each GPU";
  }
}

std::string range_text(double low, double high) {
  return low == high ? planning::figure(low) : text(planning::figure(low), "-", planning::figure(high));
}

std::string count_text(double value) {
  return base::format_count(std::llround(value));
}

std::string jobs_text(double hours, double walltime_h) {
  return walltime_h > 0 ? text(std::llround(std::ceil(hours / walltime_h - 1e-9))) : "-";
}

// Rows that differ in nothing but the batch, and yet in their hours.
std::string contradiction(const MeasuredTable& table) {
  for (size_t i = 0; i < table.rows.size(); ++i) {
    for (size_t j = i + 1; j < table.rows.size(); ++j) {
      const ScalingRow& a = table.rows[i];
      const ScalingRow& b = table.rows[j];
      const bool same = a.gpus == b.gpus && a.samples() == b.samples() && a.batch != b.batch;
      if (!same || std::max(a.hours(), b.hours()) < 1.5 * std::min(a.hours(), b.hours())) continue;
      return text("As a global batch rows ", i + 1, " and ", j + 1,
                  " contradict each other: the same data on the same ", a.gpus, " GPUs, ", planning::figure(a.hours()),
                  " h at batch ", count_text(a.batch), " and ", planning::figure(b.hours()), " h at batch ",
                  count_text(b.batch), "; at a fixed number of epochs a larger batch is not slower.");
    }
  }
  return "";
}

void tell_readings(const MeasuredTable& table, const std::vector<ReadingFit>& fits, Paper& paper) {
  Paper::Grid grid{{{"\"batch\" read as"},
                    {"meaning"},
                    {"samples/s and GPU", Align::right},
                    {"rows from", Align::right},
                    {"to", Align::right},
                    {"typical miss", Align::right}},
                   {},
                   "Each reading with one rate for all rows; rows: fitted hours / stated hours"};
  for (const auto& fit : fits) {
    const auto [low, high] = std::minmax_element(fit.factors.begin(), fit.factors.end());
    grid.rows.push_back({name_of(fit.reading), meaning_of(fit.reading), base::fixed(fit.rate_per_gpu, 3),
                         planning::figure(*low), planning::figure(*high), text("x ", base::fixed(fit.spread, 2))});
  }
  paper.table(std::move(grid));
  const std::string words = contradiction(table);
  if (!words.empty()) paper.say(words);
}

// The table planned again under each reading, with that reading's one rate.
void tell_replanned(const MeasuredTable& table, const std::vector<ReadingFit>& fits, Paper& paper) {
  std::vector<base::Column> columns{{"batch", Align::right}, {"GPUs", Align::right}, {"stated h", Align::right}};
  for (const auto& fit : fits) {
    columns.push_back({text(name_of(fit.reading), ": h"), Align::right});
    columns.push_back({"jobs", Align::right});
  }
  Paper::Grid grid{columns, {}, "The rows planned again under each reading"};
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const ScalingRow& row = table.rows[i];
    std::vector<std::string> cells{count_text(row.batch), text(row.gpus), range_text(row.low_hours, row.high_hours)};
    for (const auto& fit : fits) {
      const double hours = row.hours() * fit.factors[i];
      cells.push_back(planning::figure(hours));
      cells.push_back(jobs_text(hours, table.walltime_h));
    }
    grid.rows.push_back(std::move(cells));
  }
  paper.table(std::move(grid));
}

// What the plan of the traced network says of a row, under this reading.
void add_planned(const MeasuredTable& table, const ReadingFit& fit, size_t i, std::vector<std::string>& cells,
                 Json& entry) {
  const auto rate = table.figures[i].planned_rate;
  if (!rate) {
    cells.insert(cells.end(), {"-", "-", "-"});
    return;
  }
  const double hours = forecast::samples_shown(table.rows[i], fit.reading, table.epochs) / *rate / kSecondsOfAnHour;
  cells.insert(cells.end(), {base::fixed(*rate, 2), planning::figure(hours), jobs_text(hours, table.walltime_h)});
  entry["planned_rate"] = *rate;
  entry["planned_hours"] = hours;
}

Json tell_rows(const MeasuredTable& table, const ReadingFit& fit, Paper& paper) {
  Paper::Grid grid{{{"batch", Align::right},
                    {"nodes", Align::right},
                    {"GPUs", Align::right},
                    {"stated h", Align::right},
                    {"samples/s", Align::right},
                    {"fitted h", Align::right},
                    {"residual", Align::right},
                    {"with loss per doubling h", Align::right},
                    {"residual", Align::right},
                    {table.walltime_h > 0 ? text("jobs of ", table.walltime_h, " h: stated") : "jobs", Align::right},
                    {"fitted", Align::right}},
                   {},
                   text("Read as ", name_of(fit.reading), ": one rate of ", base::fixed(fit.rate_per_gpu, 3),
                        " samples/s and GPU; with a loss: ", base::fixed(fit.rate_of_one, 3), " on one GPU, ",
                        base::percent(fit.kept_per_doubling, 0), " of it kept with each doubling (typical miss x ",
                        base::fixed(fit.doubling_spread, 2), ")")};
  const bool planned = !table.planned_network.empty();
  if (planned) {
    for (const char* title : {"planned samples/s", "planned h", "jobs"}) grid.columns.push_back({title, Align::right});
  }
  Json rows = Json::array();
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const ScalingRow& row = table.rows[i];
    const double fitted = row.hours() * fit.factors[i];
    const double lossy = row.hours() * fit.doubling_factors[i];
    const auto residual = [](double factor) { return text(factor >= 1 ? "+" : "", base::percent(factor - 1, 0)); };
    grid.rows.push_back({count_text(row.batch), row.nodes > 0 ? text(row.nodes) : "-", text(row.gpus),
                         range_text(row.low_hours, row.high_hours),
                         base::fixed(fit.row_rates[i] * static_cast<double>(row.gpus), 2), planning::figure(fitted),
                         residual(fit.factors[i]), planning::figure(lossy), residual(fit.doubling_factors[i]),
                         jobs_text(row.high_hours, table.walltime_h), jobs_text(fitted, table.walltime_h)});
    Json entry = Json::object();
    entry["stated_hours"] = row.hours();
    entry["fitted_hours"] = fitted;
    entry["lossy_hours"] = lossy;
    entry["jobs"] = table.walltime_h > 0 ? Json(std::llround(std::ceil(fitted / table.walltime_h - 1e-9))) : Json();
    if (planned) add_planned(table, fit, i, grid.rows.back(), entry);
    rows.push_back(std::move(entry));
  }
  paper.table(std::move(grid));
  if (planned) {
    paper.say(text("Planned: the step of ", table.planned_network, " as this program runs it, traced and forecast for ",
                   table.gpu, ", ", table.gpu_batch, table.gpu_batch == 1 ? " sample" : " samples",
                   " on each GPU, the nodes and GPUs of the row, with its own exchange of gradients; input, start and "
                   "validation are not counted."));
  }
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.walltime_h > 0 && table.rows[i].low_hours == table.walltime_h) {
      paper.say(text("Row ", i + 1,
                     " states exactly the limit of a job: it may have been cut there; it is kept in the "
                     "fit as it stands."));
    }
  }
  return rows;
}

// The one efficiency: theirs over what published code of the same network would reach on that GPU.
double tell_efficiency(const MeasuredTable& table, const ReadingFit& fit, const catalogue::Catalogue& catalogue,
                       Paper& paper) {
  if (table.reference.rate <= 0 || table.gpu.empty()) return 0;
  const auto& gpu = catalogue.gpu(table.gpu);
  const auto& other = catalogue.gpu(table.reference.gpu);
  if (!gpu.tflops_fp32 || !other.tflops_fp32) return 0;
  const double carried = table.reference.rate * *gpu.tflops_fp32 / *other.tflops_fp32;
  const double efficiency = fit.rate_per_gpu / carried;
  paper.say(text("One efficiency for all rows: ", base::percent(efficiency, 1), ". Published: ", table.reference.rate,
                 " samples/s on one ", other.id, " (", table.reference.source, "); by the peaks of fp32, ",
                 *gpu.tflops_fp32, " against ", *other.tflops_fp32, " TFLOP/s, ", base::fixed(carried, 2), " on one ",
                 gpu.id, ". The table's ", base::fixed(fit.rate_per_gpu, 3), " are that share of it."));
  const int64_t dies = gpu.dies_per_board.value_or(1);
  if (dies > 1) {
    const auto share = static_cast<double>(dies);
    paper.say(text("A board of this GPU has ", dies,
                   " dies, and the driver counts dies. If a \"GPU\" of the table is a "
                   "die, a die does ",
                   base::fixed(fit.rate_per_gpu, 3), " samples/s (", base::percent(efficiency, 1),
                   "), and the other dies of a node idle; if it is a board, a die does ",
                   base::fixed(fit.rate_per_gpu / share, 3), " (", base::percent(efficiency / share, 1),
                   "). The rows' ratios, hours and jobs are the same in both."));
  }
  return efficiency;
}

Json tell_elsewhere(const MeasuredTable& table, const ReadingFit& fit, double efficiency, Paper& paper) {
  Json all = Json::array();
  if (table.elsewhere.empty()) return all;
  std::vector<base::Column> columns{
      {"batch", Align::right}, {"stated h", Align::right}, {"samples shown", Align::right}};
  for (const auto& one : table.elsewhere) {
    columns.push_back({text(one.name, ": h"), Align::right});
    if (efficiency > 0) columns.push_back({text("at ", base::percent(efficiency, 1), ": h"), Align::right});
    columns.push_back({"jobs", Align::right});
  }
  Paper::Grid grid{
      columns,
      {},
      "The same work elsewhere, by published rates of the same network; and at the table's efficiency, with its jobs"};
  for (const auto& row : table.rows) {
    const double shown = forecast::samples_shown(row, fit.reading, table.epochs);
    std::vector<std::string> cells{count_text(row.batch), range_text(row.low_hours, row.high_hours), count_text(shown)};
    Json entry = Json::array();
    for (const auto& one : table.elsewhere) {
      const double hours = shown / one.rate / kSecondsOfAnHour;
      cells.push_back(base::fixed(hours, 2));
      if (efficiency > 0) cells.push_back(base::fixed(hours / efficiency, 1));
      cells.push_back(jobs_text(efficiency > 0 ? hours / efficiency : hours, table.walltime_h));
      entry.push_back(hours);
    }
    grid.rows.push_back(std::move(cells));
    all.push_back(std::move(entry));
  }
  paper.table(std::move(grid));
  std::vector<std::string> sources;
  for (const auto& one : table.elsewhere) {
    sources.push_back(text(one.name, one.precision.empty() ? "" : text(", ", one.precision), ": ", one.rate,
                           " samples/s; ", one.source));
  }
  paper.list(std::move(sources));
  return all;
}

}  // namespace

Json explain_reading(const MeasuredTable& table, const catalogue::Catalogue& catalogue, Paper& paper) {
  std::vector<ReadingFit> fits;
  for (const Reading reading : {Reading::global_batch, Reading::images_per_epoch, Reading::steps_per_epoch}) {
    fits.push_back(forecast::fit_reading(table.rows, reading, table.epochs));
  }
  const ReadingFit& best = *std::min_element(
      fits.begin(), fits.end(), [](const ReadingFit& a, const ReadingFit& b) { return a.spread < b.spread; });
  paper.heading(table.title);
  paper.say(text("\"Batch\" is best read as ", name_of(best.reading), ", ", meaning_of(best.reading), ": one rate of ",
                 base::fixed(best.rate_per_gpu, 3), " samples/s and GPU then misses the ", table.rows.size(),
                 " rows by a factor of ", base::fixed(best.spread, 2), " as a rule."));
  tell_readings(table, fits, paper);
  tell_replanned(table, fits, paper);
  Json document = Json::object();
  document["title"] = table.title;
  document["reading"] = name_of(best.reading);
  document["rate_per_gpu"] = best.rate_per_gpu;
  document["spread"] = best.spread;
  document["kept_per_doubling"] = best.kept_per_doubling;
  document["rows"] = tell_rows(table, best, paper);
  const double efficiency = tell_efficiency(table, best, catalogue, paper);
  document["efficiency"] = efficiency > 0 ? Json(efficiency) : Json();
  document["elsewhere_hours"] = tell_elsewhere(table, best, efficiency, paper);
  Json readings = Json::object();
  for (const auto& fit : fits) readings[name_of(fit.reading)] = fit.spread;
  document["readings"] = std::move(readings);
  return document;
}

}  // namespace lockstep::advice
