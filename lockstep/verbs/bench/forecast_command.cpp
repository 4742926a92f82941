// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "lockstep/base/arguments.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/gpu_families.h"
#include "lockstep/measure/bench_trace.h"
#include "lockstep/measure/cell_forecast.h"
#include "lockstep/measure/published.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::fixed;
using base::text;

base::CommandLine forecast_line() {
  return {"bench forecast",
          "",
          "the forecast beside measured cells, or beside what others published",
          {{"--cells", "FILE", "rows of bench cells, measured on a GPU"},
           {"--gpu", "ID", "the GPU of these cells (default: the one that the rows name)"},
           {"--operators", "FILE", "their timed operators too: where forecast and fact differ, by class"},
           {"--published", "FILE", "CSV of published measurements (results/published_training.csv)"},
           {"--fit", "FILE",
            "write the factors of GPU families that these rows ask for (lockstep/forecast/gpu_families.json)"},
           {"--all", "", "list the rows left out too, each with its reason"},
           {"--json", "FILE", "every row as JSON (- = standard output)"}},
          "lockstep bench forecast --cells results/cells-h200.json\n"
          "lockstep bench forecast --published results/published_training.csv\n"};
}

double median_error(const std::vector<double>& ratios) {
  if (ratios.empty()) return 0;
  std::vector<double> errors;
  errors.reserve(ratios.size());
  for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
  std::sort(errors.begin(), errors.end());
  const size_t half = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
}

void print_rows(const std::vector<measure::PublishedForecast>& forecasts) {
  constexpr auto kRight = base::Align::right;
  base::Table table({{"line", kRight},
                     {"model"},
                     {"GPU"},
                     {"n", kRight},
                     {"type"},
                     {"batch", kRight},
                     {"published ms", kRight},
                     {"forecast ms", kRight},
                     {"ratio", kRight},
                     {"bare", kRight},
                     {"roofline", kRight},
                     {"origin"}});
  for (const auto& one : forecasts) {
    const double published = one.row->seconds();
    table.add({text(one.row->line), one.row->zoo, one.row->id, text(one.row->gpus), one.row->precision,
               text(one.row->batch), fixed(published * 1e3, 1), fixed(one.seconds * 1e3, 1),
               text(fixed(one.ratio(), 2), one.inside() ? "" : " *"), fixed(one.bare / published, 2),
               fixed(one.roofline / published, 2), one.row->origin});
  }
  std::printf("%s", table.to_text().c_str());
  std::printf(
      "  ratio: foretold / published seconds of a step, by families fitted without this origin; *: outside of the "
      "interval\n  bare: without the family's factor; roofline: every operator at the GPU's rates\n");
}

void print_left_out(const std::vector<measure::Published>& rows, bool each) {
  std::map<std::string, int64_t> reasons;
  for (const auto& row : rows) {
    if (row.excluded.empty()) continue;
    ++reasons[row.excluded];
    if (each) {
      std::printf("  line %d: %s, %s, %s: %s\n", row.line, row.model.c_str(), row.gpu.c_str(), row.framework.c_str(),
                  row.excluded.c_str());
    }
  }
  std::printf("left out:\n");
  for (const auto& [reason, count] : reasons)
    std::printf("  %4lld  %s\n", static_cast<long long>(count), reason.c_str());
}

struct Errors {
  std::vector<double> ratios, bare, by_era, roofline;
  std::set<std::string> origins;
  std::vector<const measure::PublishedForecast*> rows;
  int64_t inside = 0;

  void add(const measure::PublishedForecast& one) {
    ratios.push_back(one.ratio());
    bare.push_back(one.bare / one.row->seconds());
    by_era.push_back(one.by_era / one.row->seconds());
    roofline.push_back(one.roofline / one.row->seconds());
    origins.insert(one.row->origin);
    rows.push_back(&one);
    inside += one.inside() ? 1 : 0;
  }
};

double ninth_tenth(const std::vector<double>& ratios) {
  std::vector<double> errors;
  errors.reserve(ratios.size());
  for (const double ratio : ratios) errors.push_back(std::abs(ratio - 1));
  std::sort(errors.begin(), errors.end());
  return errors.empty() ? 0 : errors[(errors.size() * 9 + 9) / 10 - 1];
}

// Of GPUs that were not calibrated.
std::string group_of(const measure::PublishedForecast& one) {
  return one.variant_of.empty() ? one.carried.family : text("variants of ", one.variant_of);
}

void print_summary(const std::vector<measure::PublishedForecast>& forecasts) {
  std::map<std::string, Errors> families;
  Errors all;
  for (const auto& one : forecasts) {
    const std::string group = group_of(one);
    if (group.empty()) continue;
    families[group].add(one);
    all.add(one);
  }
  constexpr auto kRight = base::Align::right;
  base::Table table({{"family"},
                     {"rows", kRight},
                     {"origins", kRight},
                     {"median error", kRight},
                     {"90 %", kRight},
                     {"inside", kRight},
                     {"of rows", kRight},
                     {"by era", kRight},
                     {"bare", kRight},
                     {"roofline", kRight}});
  const auto add = [&](const std::string& name, const Errors& errors) {
    const auto rows = static_cast<double>(errors.ratios.size());
    table.add({name, text(errors.ratios.size()), text(errors.origins.size()),
               base::percent(median_error(errors.ratios)), base::percent(ninth_tenth(errors.ratios)),
               base::percent(measure::coverage_by_report(errors.rows)),
               base::percent(static_cast<double>(errors.inside) / rows), base::percent(median_error(errors.by_era)),
               base::percent(median_error(errors.bare)), base::percent(median_error(errors.roofline))});
  };
  for (const auto& [name, errors] : families) add(name, errors);
  if (!all.ratios.empty()) add("all", all);
  std::printf(
      "GPUs that were not calibrated, each origin left out of the fit that foretells it:\n%s"
      "  inside: the interval of 80 %%, each report counting once, as it was made; of rows: each row counting once\n"
      "  variants of a calibrated GPU have its chip and memory: no factor carries them\n"
      "  by era: one factor for each age of frameworks and arithmetic, whatever the GPU, fitted likewise\n",
      table.to_text().c_str());
}

void print_scaling(const std::vector<measure::Scaling>& scaling) {
  constexpr auto kRight = base::Align::right;
  base::Table table({{"line", kRight},
                     {"model"},
                     {"GPU"},
                     {"type"},
                     {"GPUs", kRight},
                     {"published", kRight},
                     {"forecast", kRight},
                     {"points", kRight}});
  constexpr double kPoints = 5;
  int64_t eight = 0, met = 0;
  for (const auto& one : scaling) {
    const double points = (one.foretold - one.published) * 100;
    table.add({text(one.many->row->line), one.many->row->zoo, one.many->row->id, one.many->row->precision,
               text(one.many->row->gpus), base::percent(one.published), base::percent(one.foretold), fixed(points, 1)});
    eight += one.many->row->gpus == 8 ? 1 : 0;
    met += one.many->row->gpus == 8 && std::abs(points) <= kPoints ? 1 : 0;
  }
  std::printf("scaling from one GPU (efficiency):\n%s  1 to 8 within 5 points: %lld of %lld\n", table.to_text().c_str(),
              static_cast<long long>(met), static_cast<long long>(eight));
}

base::Json published_json(const std::vector<measure::Published>& rows,
                          const std::vector<measure::PublishedForecast>& forecasts, const std::string& command) {
  std::map<const measure::Published*, const measure::PublishedForecast*> by_row;
  for (const auto& one : forecasts) by_row[one.row] = &one;
  base::Json all = base::Json::array();
  for (const auto& row : rows) {
    base::Json out = base::Json::object();
    out["what"] = "published step";
    out["line"] = row.line;
    out["model"] = row.zoo.empty() ? row.model : row.zoo;
    out["gpu"] = row.id.empty() ? row.gpu : row.id;
    out["gpus"] = row.gpus;
    out["batch"] = row.batch;
    out["precision"] = row.precision;
    out["framework"] = row.framework;
    const auto found = by_row.find(&row);
    if (found == by_row.end()) {
      out["excluded_because"] = row.excluded;
    } else {
      const measure::PublishedForecast& one = *found->second;
      out["published_seconds"] = row.seconds();
      out["forecast_seconds"] = one.seconds;
      out["ratio"] = one.ratio();
      out["low_seconds"] = one.low;
      out["high_seconds"] = one.high;
      out["inside"] = one.inside();
      out["ratio_by_era"] = one.by_era / row.seconds();
      out["ratio_bare"] = one.bare / row.seconds();
      out["ratio_roofline"] = one.roofline / row.seconds();
      out["family"] = group_of(one);
      out["origin"] = row.origin;
    }
    out["peer"] = row.source;
    out["command"] = command;
    out["commit"] = base::build_commit();
    all.push_back(std::move(out));
  }
  return all;
}

int compare_published(const base::Arguments& arguments, const std::vector<std::string>& words) {
  const base::Path path = *arguments.value("--published");
  const auto catalogue = catalogue::load_catalogue();
  const auto calibration = forecast::load_calibration();
  const measure::PublishedNames names = measure::load_names();
  std::vector<measure::Published> rows =
      measure::read_published(base::parse_csv(base::read_file(path), path.string()), names, catalogue);
  const auto families = forecast::load_families();
  const auto forecasts = measure::forecast_published(rows, catalogue, families, calibration, measure::trace_published);
  if (const auto out = arguments.value("--fit")) {
    base::write_file(*out, to_text(fit_families(measure::carried_steps(forecasts), families)));
  }
  if (base::give_json(arguments, published_json(rows, forecasts, bench_line("forecast", words)))) {
    return base::kExitDone;
  }
  print_rows(forecasts);
  print_left_out(rows, arguments.has("--all"));
  print_summary(forecasts);
  print_scaling(measure::compare_scaling(forecasts));
  return base::kExitDone;
}

const catalogue::Gpu& gpu_of(const base::Json& rows, const base::Arguments& arguments,
                             const catalogue::Catalogue& catalogue) {
  if (const auto id = arguments.value("--gpu")) return catalogue.gpu(*id, "--gpu");
  for (const auto& row : rows.items()) {
    const std::string machine = row.string_or("machine", "");
    if (const auto* gpu = catalogue.gpu_by_driver_name(machine.substr(0, machine.find(',')))) return *gpu;
  }
  throw base::Error(base::Blame::user, "the rows do not name a GPU of the catalogue", "say which: --gpu h200");
}

void print_cells(const std::vector<measure::CellForecast>& cells) {
  constexpr auto kRight = base::Align::right;
  base::Table table({{"cell"},
                     {"ms", kRight},
                     {"forecast", kRight},
                     {"error", kRight},
                     {"roofline", kRight},
                     {"bound"},
                     {"reserved GB", kRight},
                     {"forecast", kRight},
                     {"error", kRight},
                     {"weights", kRight},
                     {"live bytes", kRight},
                     {"DeepSim", kRight}});
  const auto signed_percent = [](double share) { return text(share >= 0 ? "+" : "", base::percent(share)); };
  for (const auto& one : cells) {
    const auto bytes = static_cast<double>(one.memory.peak_reserved);
    table.add({one.cell.name(), fixed(one.seconds() * 1e3, 2), fixed(one.time.step.value * 1e3, 2),
               signed_percent(one.time_error()), signed_percent(one.roofline_error()),
               one.time.host_bound ? "host" : "GPU", fixed(one.reserved() / 1e9, 2), fixed(bytes / 1e9, 2),
               signed_percent(one.memory_error(bytes)), signed_percent(one.memory_error(one.weights_only)),
               signed_percent(one.memory_error(one.live_bytes)), signed_percent(one.memory_error(one.deepsim))});
  }
  std::printf("%s", table.to_text().c_str());
  const auto line = [&](const char* what, const std::function<double(const measure::CellForecast&)>& error) {
    std::vector<double> ratios;
    double worst = 0, under = 0;
    for (const auto& one : cells) {
      ratios.push_back(1 + error(one));
      worst = std::max(worst, std::abs(error(one)));
      under = std::min(under, error(one));
    }
    std::printf("  %-34s median %7s  worst %7s  most under %7s\n", what, base::percent(median_error(ratios)).c_str(),
                base::percent(worst).c_str(), base::percent(under).c_str());
  };
  line("step time, network not calibrated", [](const auto& one) { return one.time_error(); });
  line("step time, pure roofline", [](const auto& one) { return one.roofline_error(); });
  line("peak reserved",
       [](const auto& one) { return one.memory_error(static_cast<double>(one.memory.peak_reserved)); });
  line("peak reserved, weights only", [](const auto& one) { return one.memory_error(one.weights_only); });
  line("peak reserved, 512-rounded bytes", [](const auto& one) { return one.memory_error(one.live_bytes); });
  line("peak reserved, DeepSim's heuristic", [](const auto& one) { return one.memory_error(one.deepsim); });
}

// Seconds of each class in the rows of one cell; empty when two cells of the file share their rows.
std::map<std::string, double> classes_of(const base::Json& operators, const measure::CellForecast& one) {
  std::map<std::string, double> sums;
  for (const auto& row : operators.items()) {
    if (row.string_or("model", "") != one.cell.job.model.name || !row.contains("kind")) continue;
    if (row.int_or("batch", 0) != one.cell.job.training.global_batch) continue;
    if (row.string_or("precision", "") != name_of(one.cell.job.training.precision)) continue;
    if (row.string_or("layout", "channels_last") != name_of(one.cell.job.model.layout)) continue;
    const double seconds = row.double_or("seconds", row.double_or("both_seconds", 0));
    sums[row.at("kind").as_string()] += seconds * static_cast<double>(row.int_or("count", 1));
  }
  return sums;
}

void print_classes(const std::vector<measure::CellForecast>& cells, const base::Json& operators) {
  for (const auto& one : cells) {
    const auto measured = classes_of(operators, one);
    std::printf("%s (ms measured -> foretold):", one.cell.name().c_str());
    for (const auto& [kind, seconds] : one.time.by_class) {
      const auto found = measured.find(name_of(kind));
      const double fact = found == measured.end() ? 0 : found->second;
      std::printf(" %s %.2f -> %.2f;", name_of(kind).c_str(), fact * 1e3, seconds * 1e3);
    }
    std::printf("\n");
  }
}

int compare_cells(const base::Arguments& arguments, const std::vector<std::string>& words) {
  const base::Json rows = base::read_json(*arguments.value("--cells"), {.max_bytes = 64 << 20});
  const auto catalogue = catalogue::load_catalogue();
  const auto cells = measure::forecast_cells(
      rows, gpu_of(rows, arguments, catalogue), forecast::load_calibration(), measure::trace_cell,
      [](const std::string& words) { std::fprintf(stderr, "%s\n", words.c_str()); });
  if (cells.empty()) throw base::Error(base::Blame::user, "no cell of the file was measured on a GPU", "");
  base::Json out = base::Json::array();
  for (const auto& one : cells) out.push_back(measure::cell_forecast_row(one, bench_line("forecast", words)));
  if (base::give_json(arguments, out)) return base::kExitDone;
  print_cells(cells);
  if (const auto file = arguments.value("--operators")) {
    print_classes(cells, base::read_json(*file, {.max_bytes = 256 << 20}));
  }
  return base::kExitDone;
}

}  // namespace

LOCKSTEP_BENCH(forecast)(const std::vector<std::string>& words) {
  const base::CommandLine line = forecast_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  if (arguments.has("--cells")) return compare_cells(arguments, words);
  if (arguments.has("--published")) return compare_published(arguments, words);
  throw base::Error(base::Blame::user, "compare the forecast with what?",
                    "lockstep bench forecast --published results/published_training.csv");
}

}  // namespace lockstep::verbs::bench
