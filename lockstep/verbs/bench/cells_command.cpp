// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/clock.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/cell.h"
#include "lockstep/measure/child.h"
#include "lockstep/measure/rows_file.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/device.h"
#include "lockstep/step/reducer.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::Json;
using base::text;

base::CommandLine cells_line() {
  return {"bench cells",
          "",
          "memory, time and energy of the real step over many models, batches and precisions; each in a fresh process",
          {{"--cells", "FILE", "JSON list of cells (default: those built in)"},
           {"--only", "TEXT", "cells whose name contains it: resnet50-b64"},
           {"--device", "NAME", "cpu (default) or cuda"},
           {"--threads", "N", "compute threads (default: the cores)"},
           {"--steps", "N", "timed steps, at least (default 10)"},
           {"--operators", "FILE", "also time each operator; rows for `bench fit`"},
           {"--allocator", "DIR", "GPU: a recording of the allocator's first 3 steps for each cell"},
           {"--seconds", "N", "start no further cell after this time (default: none)"},
           {"--cell-seconds", "N", "kill a cell after this time (default 180)"},
           {"--one", "JSON", "this cell alone, in this process: what the fresh processes are started with"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the rows, written after each cell (- = standard output, at the end)"}},
          "lockstep bench cells --device cuda --json cells.json --operators operators.json --allocator recordings\n"};
}

measure::CellRun cell_run(const base::Arguments& arguments) {
  measure::CellRun how;
  how.threads = arguments.int_or("--threads", site::usable_cores());
  how.steps = std::max<int64_t>(1, arguments.int_or("--steps", how.steps));
  how.operators = arguments.has("--operators");
  how.allocator = arguments.value_or("--allocator", "");
  return how;
}

// In the fresh process: the row and the operators go to files that the parent reads.
int run_one(const base::Arguments& arguments) {
  const Json row = base::parse_json(*arguments.value("--one"), "--one");
  const measure::Cell cell = measure::parse_cell(row);
  measure::CellRun how = cell_run(arguments);
  how.device = step::open_device(arguments.value_or("--device", "cpu"), 0);
  how.say = [&](std::string_view words) {
    std::fprintf(stderr, "  %s: %.*s\n", cell.name().c_str(), static_cast<int>(words.size()), words.data());
  };
  const measure::CellResult result = measure::run_cell(cell, how);
  if (const auto file = arguments.value("--operators")) measure::write_rows(*file, result.operators);
  if (!base::give_json(arguments, Json::array({result.row}))) std::fflush(stdout);
  return base::kExitDone;
}

class Grid {
 public:
  Grid(const base::Arguments& arguments, std::string command)
      : arguments_(arguments),
        command_(std::move(command)),
        device_(arguments.value_or("--device", "cpu")),
        machine_(measure::machine_name(device_ == "cuda" ? at::kCUDA : at::kCPU)) {}

  void run(const Json& cell) {
    Json row = measure::cell_head(cell, device_);
    std::string name = cell.string_or("model", "?");
    try {
      const measure::Cell parsed = measure::parse_cell(cell);
      name = parsed.name();
      if (name.find(arguments_.value_or("--only", "")) == std::string::npos) return;
      if (over()) throw base::Error(base::Blame::user, "not started: --seconds are over", "");
      say(text("cell ", rows_.size() + 1, ": ", name));
      merge(row, child(parsed, cell));
    } catch (const std::exception& error) {
      row["error"] = std::string(error.what());
      say(text("  ", name, ": ", error.what()));
    }
    row["command"] = command_;
    row["commit"] = base::build_commit();
    row["machine"] = machine_;
    rows_.push_back(std::move(row));
    save();
  }

  const Json& rows() const { return rows_; }
  void print() const;

 private:
  static void say(const std::string& words) { std::fprintf(stderr, "%s\n", words.c_str()); }

  bool over() const {
    const auto limit = arguments_.int_or("--seconds", 0);
    return limit > 0 && base::steady_seconds() - start_ > static_cast<double>(limit);
  }

  static void merge(Json& row, const Json& measured) {
    for (const auto& member : measured.members()) row[member.key] = member.value;
  }

  Json child(const measure::Cell& cell, const Json& as_given) {
    const auto rows = folder_.path() / "row.json";
    const auto operators = folder_.path() / "operators.json";
    std::filesystem::remove(rows);
    std::filesystem::remove(operators);
    std::vector<std::string> words{
        measure::kThisProgram, "bench", "cells", "--one", as_given.dump(-1), "--here", "--device", device_, "--json",
        rows.string()};
    if (const auto threads = arguments_.value("--threads")) words.insert(words.end(), {"--threads", *threads});
    if (const auto steps = arguments_.value("--steps")) words.insert(words.end(), {"--steps", *steps});
    if (arguments_.has("--operators")) words.insert(words.end(), {"--operators", operators.string()});
    if (const auto to = arguments_.value("--allocator"); to && device_ == "cuda") {
      base::make_folders(*to);
      words.insert(words.end(), {"--allocator", (base::Path(*to) / (cell.name() + ".rec")).string()});
    }
    std::vector<std::pair<std::string, std::string>> environment;
    if (cell.expandable_segments) environment.emplace_back("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
    const auto limit = static_cast<double>(arguments_.int_or("--cell-seconds", 180));
    const measure::ChildEnd end = measure::run_child(words, environment, limit);
    if (!end.trouble.empty()) {
      throw base::Error(base::Blame::machine, text(end.trouble, ": ", end.last_words), "see its own messages");
    }
    if (arguments_.has("--operators")) keep_operators(operators);
    return measure::read_rows(rows).items().at(0);
  }

  void keep_operators(const base::Path& file) {
    const Json seen = measure::read_rows(file);
    for (const auto& row : seen.items()) operators_.push_back(row);
  }

  void save() const {
    const auto file = arguments_.value("--json");
    if (file && *file != "-") measure::write_rows(*file, rows_);
    if (const auto to = arguments_.value("--operators")) measure::write_rows(*to, operators_);
  }

  const base::Arguments& arguments_;
  const std::string command_;
  const std::string device_;
  const std::string machine_;
  const double start_ = base::steady_seconds();
  const base::TemporaryFolder folder_;
  Json rows_ = Json::array();
  Json operators_ = Json::array();
};

void Grid::print() const {
  base::Table table({{"model"},
                     {"batch", base::Align::right},
                     {"precision"},
                     {"optimizer"},
                     {"ms", base::Align::right},
                     {"samples/s", base::Align::right},
                     {"peak GB", base::Align::right},
                     {"W", base::Align::right},
                     {"error"}});
  for (const auto& row : rows_.items()) {
    const auto number = [&](const char* key, double scale, int digits) {
      return row.contains(key) ? base::fixed(row.at(key).as_double() * scale, digits) : std::string("-");
    };
    table.add({row.at("model").as_string(), text(row.at("batch").as_int()), row.at("precision").as_string(),
               row.at("optimizer").as_string(), number("seconds", 1000, 1), number("samples_per_second", 1, 1),
               row.contains("peak_reserved_bytes") ? number("peak_reserved_bytes", 1e-9, 2)
                                                   : number("peak_resident_bytes", 1e-9, 2),
               number("watts", 1, 0), row.string_or("error", "")});
  }
  std::printf("%s", table.to_text().c_str());
}

}  // namespace

LOCKSTEP_BENCH(cells)(const std::vector<std::string>& words) {
  const base::CommandLine line = cells_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("cells", words, arguments);
  if (arguments.has("--one")) return run_one(arguments);
  const std::string device = arguments.value_or("--device", "cpu");
  if (device != "cpu" && device != "cuda") {
    throw base::Error(base::Blame::user, text("--device ", device, ": no such device"), "known: cpu, cuda");
  }
  const auto cells = measure::read_cells(arguments.value_or("--cells", ""));
  Grid grid(arguments, bench_line("cells", words));
  for (const auto& cell : cells) grid.run(cell);
  if (grid.rows().items().empty()) {
    throw base::Error(base::Blame::user, text("--only ", arguments.value_or("--only", ""), ": no cell has that name"),
                      "lockstep bench cells --help");
  }
  if (arguments.value_or("--json", "") == "-") return std::printf("%s\n", grid.rows().dump().c_str()), base::kExitDone;
  grid.print();
  for (const auto& row : grid.rows().items()) {
    if (!row.contains("error")) return base::kExitDone;
  }
  throw base::Error(base::Blame::machine, "not one cell could be measured",
                    grid.rows().items()[0].at("error").as_string());
}

}  // namespace lockstep::verbs::bench
