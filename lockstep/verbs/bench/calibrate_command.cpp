// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/fit.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/calibrate.h"
#include "lockstep/measure/rows_file.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/request.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/probe.h"
#include "lockstep/step/device.h"
#include "lockstep/step/memory.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::Json;

base::CommandLine calibrate_line() {
  return {"bench calibrate",
          "",
          "times single operators of every class over their sizes on this device, and keeps it for lockstep plan",
          {{"--device", "NAME", "cpu (default) or cuda"},
           {"--threads", "N", "compute threads (default: the cores)"},
           {"--seconds", "N", "start no further case after this time (default 60, with a GPU 240)"},
           {"--seed", "N", "of the order of the cases (default 1)"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "only the rows, for bench fit, written now and then (- = standard output, at the end)"}},
          "Without --json it writes ~/.config/lockstep/calibration/ID.json, which every plan for this device uses from "
          "then\n"
          "on. What the launching thread pays is taken from the nearest calibration that has it.\n"
          "example: lockstep bench calibrate --device cuda\n"};
}

// Who, when and what stands once, in the first row: the others are many.
Json with_head(const Json& rows, at::Device device, const std::string& command) {
  Json head = Json::object();
  head["what"] = "calibration";
  head["device"] = device.is_cuda() ? "cuda" : "cpu";
  head["threads"] = at::get_num_threads();
  head["command"] = command;
  head["commit"] = base::build_commit();
  head["machine"] = measure::machine_name(device);
  Json all = Json::array({std::move(head)});
  for (const auto& row : rows.items()) all.push_back(row);
  return all;
}

// The rates of what was measured, as a plan for this machine has them.
forecast::Rates rates_here(at::Device device) {
  const auto catalogue = catalogue::load_catalogue();
  if (!device.is_cuda()) {
    const planning::Here here = planning::describe_here(site::probe_site(), catalogue, planning::today());
    const catalogue::Cpu* known = catalogue.cpu_by_model_name(here.processor.name);
    return forecast::rates_of(known ? *known : here.processor, at::get_num_threads());
  }
  const std::string name = measure::machine_name(device);
  if (const auto* row = catalogue.gpu_by_driver_name(name)) return forecast::rates_of(*row);
  throw base::Error(
      base::Blame::user, base::text("the catalogue has no GPU '", name, "': its rates are not known"),
      "add its row, with driver_names, to ~/.config/lockstep/catalogue/gpus.json, or keep the rows: --json");
}

// The calibration for ~/.config/lockstep. Rows of single operators do not say what lies between them.
forecast::DeviceCalibration calibration_here(const Json& rows, const forecast::Rates& rates, at::Device device,
                                             const std::string& command) {
  forecast::DeviceCalibration made = forecast::fit_operators(rows, rates);
  const forecast::Calibration known = forecast::load_calibration();
  const forecast::DeviceCalibration& nearest = known.basis(rates);
  made.host = nearest.host;
  made.gap = nearest.gap;
  made.power = nearest.power;
  made.machine = measure::machine_name(device);
  made.command = command;
  made.date = planning::today();
  return made;
}

}  // namespace

LOCKSTEP_BENCH(calibrate)(const std::vector<std::string>& words) {
  const base::CommandLine line = calibrate_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("calibrate", words, arguments);
  measure::CalibrateOptions options;
  options.device = step::open_device(arguments.value_or("--device", "cpu"), 0);
  options.seconds = static_cast<double>(arguments.int_or("--seconds", options.device.is_cuda() ? 240 : 60));
  options.seed = static_cast<uint64_t>(arguments.int_or("--seed", 1));
  step::keep_freed_memory();
  at::set_num_threads(static_cast<int>(arguments.int_or("--threads", site::usable_cores())));
  const std::string command = bench_line("calibrate", words);
  const auto file = arguments.value("--json");
  options.say = say_progress;
  options.save = [&](const Json& rows) {
    if (file && *file != "-") measure::write_rows(*file, with_head(rows, options.device, command));
  };
  std::optional<forecast::Rates> rates;  // asked for first: minutes of measuring are not to be lost
  if (!file) rates = rates_here(options.device);
  const measure::CalibrateResult result = measure::calibrate(options);
  if (result.cases == 0) {
    throw base::Error(base::Blame::machine, "not one case could be timed", "see the messages above");
  }
  if (file && *file == "-") {
    return std::printf("%s\n", with_head(result.rows, options.device, command).dump().c_str()), base::kExitDone;
  }
  std::printf("%lld cases timed, %lld rows; %lld left out by --seconds, %lld failed\n",
              static_cast<long long>(result.cases), static_cast<long long>(result.rows.size()),
              static_cast<long long>(result.left_out), static_cast<long long>(result.failed));
  if (!rates) return base::kExitDone;
  const auto kept = forecast::user_calibrations() / base::text(rates->id, ".json");
  std::filesystem::create_directories(kept.parent_path());
  base::write_file(kept, forecast::to_text(calibration_here(result.rows, *rates, options.device, command)));
  std::printf("%s: lockstep plan uses it for %s from now on; remove the file and it does not\n", kept.c_str(),
              rates->id.c_str());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
