// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/scaling_report.h"

#include <algorithm>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/collective.h"
#include "lockstep/forecast/scaling.h"
#include "lockstep/site/command.h"

namespace lockstep::measure {
namespace {

using base::Align;
using base::Json;
using base::text;
using forecast::CollectiveKind;

std::string spread_text(const Efficiency& efficiency) {
  const double half = (efficiency.high - efficiency.low) / 2;
  return text(base::fixed(efficiency.value, 3), half > 0 ? text(" +-", base::fixed(half, 3)) : "");
}

std::string metric_text(const ScalingPoint& point) {
  const auto& headline = point.runs.back().headline;
  return headline ? headline->text : "-";
}

std::string hidden_text(const std::optional<double>& share) {
  return share ? base::percent(*share, 0) : "-";
}

advice::Paper::Grid measured_grid(const ScalingReport& report) {
  advice::Paper::Grid grid{
      {{"ranks", Align::right},
       {"batch", Align::right},
       {"steps", Align::right},
       {"hours", Align::right},
       {"samples/s", Align::right},
       {"planned", Align::right},
       {"efficiency", Align::right},
       {"communication", Align::right},
       {"waited", Align::right},
       {"hidden", Align::right},
       {"metric"}},
      {},
      "efficiency: median over the runs, +- half its range; communication: the all-reduce of a step alone; "
      "waited: what of a step's end was spent waiting for it and for slower ranks"};
  for (const auto& point : report.points) {
    const auto planned = planned_rate(point, report.points[0], report.link);
    double hours = 0;
    for (const auto& run : point.runs) hours += run.hours / static_cast<double>(point.runs.size());
    grid.rows.push_back({text(point.ranks), text(point.batch), text(point.runs.back().steps), base::fixed(hours, 4),
                         base::fixed(point.rate(), 1), planned ? base::fixed(*planned, 1) : "-",
                         spread_text(efficiency_of(point, report.points[0])),
                         point.alone_seconds > 0 ? base::format_duration(point.alone_seconds) : "-",
                         point.ranks > 1 ? base::format_duration(point.exposed_seconds()) : "-",
                         hidden_text(point.hidden_share()), metric_text(point)});
  }
  return grid;
}

// The words of a command line without these options and, but for --array, their values.
std::vector<std::string> without(const std::vector<std::string>& words, const std::vector<std::string>& options) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (std::find(options.begin(), options.end(), name) == options.end()) {
      kept.push_back(words[i]);
    } else if (name == words[i] && name != "--array") {
      ++i;
    }
  }
  return kept;
}

Json common_row(const ScalingReport& report, const std::string& what) {
  const auto& job = report.bench.job;
  Json row = Json::object();
  row["what"] = what;
  row["model"] = job.model.name;
  row["precision"] = name_of(job.training.precision);
  row["mode"] = name_of(report.bench.mode);
  return row;
}

void sign_row(const ScalingReport& report, Json& row) {
  row["command"] = report.command;
  row["commit"] = base::build_commit();
  row["machine"] = report.machine;
}

}  // namespace

std::string why_not_simulated(const ScalingReport& report) {
  const ScalingPoint& first = report.points[0];
  if (first.ranks != 1)
    return text("the first point has ", first.ranks, " ranks: it takes the step of one (--ranks 1,...)");
  if (first.gradient_bytes <= 0) {
    return "a step of this job does not sum one whole gradient (training.zero 2 or 3, virtual ranks, frozen blocks)";
  }
  if (!report.link && report.inter_rate <= 0) return "no link between two ranks was measured: give --inter-rate";
  return "";
}

std::vector<forecast::RankForecast> simulate_ranks(const ScalingReport& report) {
  std::vector<forecast::RankForecast> all;
  const ScalingPoint& first = report.points[0];
  if (report.simulated.empty() || !why_not_simulated(report).empty()) return all;
  forecast::Network network = report.link.value_or(forecast::Network{});
  for (const int64_t ranks : report.simulated) {
    network.ranks = ranks;
    network.nodes = report.inter_rate > 0 ? ranks : 1;
    network.inter_rate = report.inter_rate;
    all.push_back(
        forecast::forecast_ranks({.step_seconds = first.step_seconds(), .gradient_bytes = first.gradient_bytes}, ranks,
                                 [&](double bytes, int64_t) {
                                   return forecast::mpi_collective_seconds(CollectiveKind::all_reduce, bytes, network);
                                 }));
  }
  return all;
}

std::vector<BesideRow> beside_rows(const std::vector<advice::MeasuredTable>& tables) {
  std::vector<BesideRow> rows;
  for (const auto& table : tables) {
    const auto& one = table.rows[0];
    if (one.rate <= 0 || one.gpus != 1) continue;
    for (const auto& row : table.rows) {
      if (row.gpus == 1 || row.rate <= 0) continue;
      BesideRow beside{.table = table.title,
                       .gpus = row.gpus,
                       .measured = forecast::scaling_efficiency(row.rate, row.gpus, one.rate, one.gpus)};
      if (table.network.gradient_bytes > 0) {
        const forecast::Network network{.ranks = row.gpus,
                                        .nodes = std::max<int64_t>(1, row.gpus / table.network.per_node),
                                        .intra_rate = table.network.inter_rate,
                                        .inter_rate = table.network.inter_rate};
        const auto model = [&](bool overlaps) {
          const forecast::RankCosts costs{.step_seconds = one.batch / one.rate,
                                          .gradient_bytes = table.network.gradient_bytes,
                                          .overlaps = overlaps,
                                          .overlap = forecast::overlap_cost(network)};
          return forecast::forecast_ranks(costs, row.gpus,
                                          [&](double bytes, int64_t) {
                                            return forecast::collective_seconds(CollectiveKind::all_reduce, bytes,
                                                                                network);
                                          })
              .efficiency;
        };
        beside.overlapped = model(true);
        beside.after = model(false);
      }
      rows.push_back(beside);
    }
  }
  return rows;
}

std::string doubt_of(const ScalingReport& report) {
  constexpr double kSpread = .1, kAboveOne = 1.05;
  const auto ranks_of = [](const ScalingPoint& point) {
    return text(point.ranks, point.ranks == 1 ? " rank" : " ranks");
  };
  double widest = kSpread, highest = kAboveOne;
  std::string spread, above;
  for (const auto& point : report.points) {
    const Efficiency efficiency = efficiency_of(point, report.points[0]);
    const double range = (efficiency.high - efficiency.low) / efficiency.value;
    if (range > widest) {
      widest = range;
      spread = text("the runs of ", ranks_of(point), " differ by ", base::percent(range, 0));
    }
    if (efficiency.value > highest) {
      highest = efficiency.value;
      above = text(ranks_of(point), " have an efficiency of ", base::fixed(highest, 2));
    }
  }
  if (spread.empty() && above.empty()) return "";
  return text(spread, spread.empty() || above.empty() ? "" : ", ", above, ": measure on an idle machine");
}

advice::Paper scaling_paper(const ScalingReport& report) {
  advice::Paper paper;
  const auto& job = report.bench.job;
  paper.title = text("Scaling of ", job.name, " (", job.model.name, "), ", name_of(report.bench.mode));
  paper.say(text(report.machine, ", ", report.bench.device, ", ",
                 report.bench.device == "cpu" ? text(report.bench.threads, " threads a rank; ") : "1 GPU a rank; ",
                 report.bench.mode == ScalingMode::weak
                     ? "weak: the batch is multiplied by the ranks and the steps are divided by them"
                     : "strong: the job as it is, the batch is shared"));
  paper.table(measured_grid(report));
  if (const std::string doubt = doubt_of(report); !doubt.empty()) paper.say(doubt);
  const auto simulated = simulate_ranks(report);
  if (!simulated.empty()) {
    advice::Paper::Grid grid{
        {{"ranks", Align::right},
         {"step", Align::right},
         {"communication", Align::right},
         {"not hidden", Align::right},
         {"slowest rank", Align::right},
         {"efficiency", Align::right}},
        {},
        text("simulated, every rank with the share that one rank had: the step of one rank as measured, ",
             report.inter_rate > 0 ? text("a network of ", base::format_rate(report.inter_rate))
                                   : std::string("the link between two ranks as measured here"),
             ", ranks that differ by 0.7 % from step to step")};
    for (const auto& one : simulated) {
      grid.rows.push_back({text(one.ranks), base::format_duration(one.step), base::format_duration(one.communication),
                           base::format_duration(one.exposed), base::format_duration(one.skew),
                           base::fixed(one.efficiency, 3)});
    }
    paper.table(std::move(grid));
  }
  const auto beside = beside_rows(report.beside);
  if (!beside.empty()) {
    advice::Paper::Grid grid{
        {{"published"},
         {"GPUs", Align::right},
         {"measured", Align::right},
         {"model, overlapped", Align::right},
         {"model, after backward", Align::right}},
        {},
        "the model from the table's own rate of one GPU and its stated network; -: the table states none"};
    for (const auto& row : beside) {
      grid.rows.push_back({row.table, text(row.gpus), base::fixed(row.measured, 3),
                           row.overlapped > 0 ? base::fixed(row.overlapped, 3) : "-",
                           row.after > 0 ? base::fixed(row.after, 3) : "-"});
    }
    paper.table(std::move(grid));
  }
  return paper;
}

std::string scaling_page(const ScalingReport& report) {
  std::string page = advice::to_html(scaling_paper(report));
  const size_t end = page.rfind("</body>");
  base::ensure(end != std::string::npos, "a page has a body");
  page.insert(end, scaling_svg(report));
  return page;
}

Json scaling_rows(const ScalingReport& report) {
  Json rows = Json::array();
  for (const auto& point : report.points) {
    Json row = common_row(report, "scaling");
    row["ranks"] = point.ranks;
    row["batch"] = point.batch;
    row["steps"] = point.runs.back().steps;
    row["hours"] = point.runs.back().hours;
    if (report.bench.device == "cpu") row["threads"] = report.bench.threads;
    row["runs"] = static_cast<int64_t>(point.runs.size());
    row["samples_per_second"] = point.rate();
    if (const auto planned = planned_rate(point, report.points[0], report.link)) {
      row["planned_samples_per_second"] = *planned;
    }
    const Efficiency efficiency = efficiency_of(point, report.points[0]);
    row["efficiency"] = efficiency.value;
    row["efficiency_low"] = efficiency.low;
    row["efficiency_high"] = efficiency.high;
    if (point.alone_seconds > 0) row["all_reduce_alone_seconds"] = point.alone_seconds;
    row["exposed_seconds"] = point.exposed_seconds();
    if (const auto hidden = point.hidden_share()) row["hidden_share"] = *hidden;
    if (const auto& headline = point.runs.back().headline) row[headline->name] = headline->value;
    sign_row(report, row);
    rows.push_back(std::move(row));
  }
  for (const auto& one : simulate_ranks(report)) {
    Json row = common_row(report, "scaling, simulated");
    row["mode"] = name_of(ScalingMode::weak);  // whatever was measured: every rank keeps the batch of one
    row["ranks"] = one.ranks;
    row["batch"] = one.ranks * report.points[0].batch;
    row["efficiency"] = one.efficiency;
    row["step_seconds"] = one.step;
    row["hidden_share"] = one.hidden_share();
    row["inter_rate"] = report.inter_rate;
    sign_row(report, row);
    rows.push_back(std::move(row));
  }
  for (const auto& one : beside_rows(report.beside)) {
    Json row = Json::object();
    row["what"] = "scaling, published beside the model";
    row["peer"] = one.table;
    row["ranks"] = one.gpus;
    row["efficiency_published"] = one.measured;
    if (one.overlapped > 0) {
      row["efficiency"] = one.overlapped;
      row["efficiency_after_backward"] = one.after;
      row["ratio"] = one.overlapped / one.measured;
    }
    sign_row(report, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json scaling_table(const ScalingReport& report) {
  const auto& job = report.bench.job;
  Json document = Json::object();
  document["title"] = text("Measured scaling of ", job.name);
  document["source"] = text(report.command, ", ", report.machine, ", commit ", base::build_commit());
  std::vector<std::string> notes{text("gpus counts ranks (", report.bench.device, "); batch is the share of one rank; ",
                                      report.bench.mode == ScalingMode::weak
                                          ? "weak scaling: global batch multiplied, steps divided"
                                          : "strong scaling: one global batch, shared")};
  if (const std::string doubt = doubt_of(report); !doubt.empty()) notes.push_back(doubt);
  document["notes"] = Json::array_of(notes);
  Json table = Json::object();
  table["title"] = text(job.model.name, ", ", name_of(report.bench.mode), " scaling");
  Json rows = Json::array();
  for (const auto& point : report.points) {
    Json row = Json::object();
    double low = point.runs[0].hours, high = low;
    for (const auto& run : point.runs) {
      low = std::min(low, run.hours);
      high = std::max(high, run.hours);
    }
    row["gpus"] = point.ranks;
    row["batch"] = static_cast<double>(point.batch) / static_cast<double>(point.ranks);
    row["steps"] = point.runs.back().steps;
    row["hours"] = Json::array({Json(low), Json(high)});
    row["rate"] = point.rate();
    const Efficiency efficiency = efficiency_of(point, report.points[0]);
    row["efficiency_low"] = efficiency.low;
    row["efficiency_high"] = efficiency.high;
    if (const auto hidden = point.hidden_share()) row["hidden"] = *hidden;
    if (const auto planned = planned_rate(point, report.points[0], report.link)) row["planned_rate"] = *planned;
    if (const auto& headline = point.runs.back().headline) row["score"] = headline->text;
    rows.push_back(std::move(row));
  }
  table["rows"] = std::move(rows);
  document["tables"] = Json::array({std::move(table)});
  return document;
}

std::string array_script(const ScalingBench& bench, const std::vector<std::string>& words) {
  std::vector<std::string> task = without(words, {"--ranks", "--array"});
  // A task knows one point only: what the cores of all points come to is settled here.
  if (bench.device == "cpu") {
    task = without(task, {"--threads"});
    task.insert(task.end(), {"--threads", text(bench.threads)});
  }
  const std::string collect = text("lockstep bench scaling ", site::shell_words(task), " --collect");
  const std::string line =
      text("lockstep bench scaling ", site::shell_words(without(task, {"--simulate", "--inter-rate", "--beside"})));
  const size_t last = bench.ranks.size() - 1;
  std::string script =
      text("#!/bin/sh\n#SBATCH --job-name=scaling\n#SBATCH --array=0-", last, "\n#PBS -N scaling\n",
           last > 0 ? text("#PBS -J 0-", last, "\n") : "",  // PBS takes no array of one
           "# One point a task. Ask for the ranks of the largest point; then, when all are done:\n#   ", collect,
           "\nset -e\nset --");
  for (const int64_t ranks : bench.ranks) script += text(" ", ranks);
  const char* index = last > 0 ? "${SLURM_ARRAY_TASK_ID:-${PBS_ARRAY_INDEX:?run me as an array}}" : "0";
  // PBS starts scripts in the home folder.
  script += text("\nshift \"", index, "\"\ncd \"${PBS_O_WORKDIR:-.}\"\nexec ", line, " --ranks \"$1\"\n");
  return script;
}

}  // namespace lockstep::measure
