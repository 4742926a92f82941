// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/energy.h"
#include "lockstep/forecast/fit.h"
#include "lockstep/forecast/time.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/bench_trace.h"
#include "lockstep/measure/cell_forecast.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

constexpr base::JsonLimits kRowLimits = {.max_bytes = 256 << 20};
// A step of whose wall time the device computes less than this is the host's.
constexpr double kHostBound = 0.75;

base::CommandLine fit_line() {
  return {"bench fit",
          "ROWS...",
          "a calibration from timed operators (of bench cells --operators, bench calibrate)",
          {{"--gpu", "ID", "the GPU they were timed on, as the catalogue has it"},
           {"--cpu", "ID", "or the processor"},
           {"--cores", "N", "of that processor"},
           {"--cells", "FILE", "rows of bench cells of the same GPU: what the host pays, power, the interval"},
           {"--machine", "TEXT", "what it was, in words (default: what the cells say)"},
           {"--date", "YYYY-MM-DD", "when it was measured"},
           {"--out", "FILE", "the calibration; catalogue/calibration/<id>.json travels with the program"},
           {"--json", "FILE", "figures of the fit as JSON (- = standard output)"}},
          "lockstep bench fit operators.json --gpu h200 --cells cells.json --out catalogue/calibration/h200.json\n"};
}

forecast::Rates rates_asked(const base::Arguments& arguments, const catalogue::Catalogue& catalogue) {
  if (const auto id = arguments.value("--gpu")) return forecast::rates_of(catalogue.gpu(*id, "--gpu"));
  if (const auto id = arguments.value("--cpu")) {
    return forecast::rates_of(catalogue.cpu(*id, "--cpu"), arguments.int_or("--cores", 1));
  }
  throw base::Error(base::Blame::user, "which device were the operators timed on?", "--gpu ID, or --cpu ID --cores N");
}

void say(const std::string& words) {
  std::fprintf(stderr, "%s\n", words.c_str());
}

// How far the steps of `cells` are from what the device's calibration says, each network foretold without itself.
double step_error(const forecast::DeviceCalibration& device, const std::vector<measure::CellForecast>& cells,
                  const catalogue::Gpu& gpu, std::vector<double>* ratios = nullptr) {
  std::map<std::string, forecast::Calibration> unseen;
  std::vector<double> errors;
  double mean = 0;
  for (const auto& one : cells) {
    const std::string& model = one.cell.job.model.name;
    const auto& others = unseen.try_emplace(model, forecast::Calibration({device}).without_model(model)).first->second;
    const auto time = forecast::forecast_time(one.recording, gpu, others);
    const double ratio = one.seconds() / time.step.value;
    errors.push_back(std::abs(std::log(ratio)));
    mean += std::min(errors.back(), 0.3) / static_cast<double>(cells.size());
    if (ratios != nullptr) ratios->push_back(ratio);
  }
  return measure::median(errors) + mean;
}

void scale_host(forecast::HostCosts& host, double factor) {
  host.operation *= factor;
  host.view *= factor;
  for (auto& [kind, seconds] : host.by_class) seconds *= factor;
}

// Two numbers for the whole GPU: what a kernel waits for the one before it, and what the host pays when nobody watches
// it. One after the other, twice, in steps finer than the spread of the cells.
void fit_gap_and_host(forecast::DeviceCalibration& device, const std::vector<measure::CellForecast>& cells,
                      const catalogue::Gpu& gpu) {
  const forecast::HostCosts watched = device.host;
  double scale = 1;
  for (int round = 0; round < 2; ++round) {
    double least = 1e300, best = device.gap;
    for (const double gap : {0.0, 0.5e-6, 1e-6, 1.5e-6, 2e-6, 3e-6}) {
      device.gap = gap;
      const double error = step_error(device, cells, gpu);
      if (error < least) least = error, best = gap;
    }
    device.gap = best;
    least = 1e300;
    double kept = scale;
    for (double factor = 0.4; factor < 1.5; factor *= 1.08) {
      device.host = watched;
      scale_host(device.host, factor);
      const double error = step_error(device, cells, gpu);
      if (error < least) least = error, kept = factor;
    }
    scale = kept;
    device.host = watched;
    scale_host(device.host, scale);
  }
  say(text("gap ", device.gap * 1e6, " us; host ", scale, " of what it paid while watched"));
}

// Host, power and interval, from whole steps of the same GPU.
void fit_cells(forecast::DeviceCalibration& device, const base::Json& operators, const base::Json& cells,
               const catalogue::Gpu& gpu) {
  const auto first = measure::forecast_cells(cells, gpu, forecast::Calibration({device}), measure::trace_cell, say);
  std::vector<forecast::HostCase> host;
  std::vector<forecast::PowerCase> power;
  for (const auto& one : first) {
    const double busy = one.measured.double_or("busy_seconds", one.time.device);
    if (busy < kHostBound * one.seconds()) host.push_back({&one.recording, one.seconds()});
    if (const auto* watts = one.measured.find("watts"); watts && gpu.tdp_w) {
      const double idle = forecast::PowerRules{}.idle_share * *gpu.tdp_w;
      const double loop = one.measured.double_or("loop_seconds", one.seconds());
      power.push_back({watts->as_double(), idle, *gpu.tdp_w, std::min(1.0, busy / loop), one.time.compute_bound_share});
    }
  }
  device.host = forecast::fit_host(forecast::host_by_class(operators), host);
  device.power = forecast::fit_power(power, device.power);
  say(text("host: ", host.size(), " cells are the host's; power: ", power.size(), " cells"));
  fit_gap_and_host(device, first, gpu);
  std::vector<double> ratios;
  step_error(device, first, gpu, &ratios);
  device.measured = forecast::estimate_spread(ratios);
}

}  // namespace

LOCKSTEP_BENCH(fit)(const std::vector<std::string>& words) {
  const base::CommandLine line = fit_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  if (arguments.positional.empty()) {
    throw base::Error(base::Blame::user, "fit what?", "give files of timed operators: bench cells --operators FILE");
  }
  const auto catalogue = catalogue::load_catalogue();
  base::Json operators = base::Json::array();
  for (const auto& file : arguments.positional) {
    const base::Json rows = base::read_json(file, kRowLimits);
    for (const auto& row : rows.items()) operators.push_back(row);
  }
  forecast::DeviceCalibration device = forecast::fit_operators(operators, rates_asked(arguments, catalogue));
  device.date = arguments.value_or("--date", "");
  device.machine = arguments.value_or("--machine", "");
  device.command = bench_line("fit", words);
  const bool gpu = device.rates.kind == forecast::DeviceKind::gpu;
  const forecast::Spread operators_alone = device.measured;
  if (const auto cells = arguments.value("--cells"); cells && gpu) {
    const base::Json rows = base::read_json(*cells, kRowLimits);
    for (const auto& row : rows.items()) {
      if (device.machine.empty()) device.machine = row.string_or("machine", "");
    }
    fit_cells(device, operators, rows, catalogue.gpu(device.rates.id));
  }
  if (const auto out = arguments.value("--out")) base::write_file(*out, forecast::to_text(device));
  base::Json row = base::Json::object();
  row["what"] = "calibration";
  row["device"] = device.rates.id;
  row["samples"] = device.samples.size();
  row["measured_low"] = device.measured.low;
  row["measured_high"] = device.measured.high;
  row["carried_over_low"] = device.carried_over.low;
  row["carried_over_high"] = device.carried_over.high;
  row["command"] = device.command;
  if (base::give_json(arguments, base::Json::array({row}))) return base::kExitDone;
  std::printf(
      "%zu samples; an operator left out is foretold within %.2f to %.2f of its time (80 %% of them); a step of "
      "this device within %.2f to %.2f, of others within %.2f to %.2f\n",
      device.samples.size(), operators_alone.low, operators_alone.high, device.measured.low, device.measured.high,
      device.carried_over.low, device.carried_over.high);
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
