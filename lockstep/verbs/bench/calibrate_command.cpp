// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>

#include <cstdio>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/calibrate.h"
#include "lockstep/measure/rows_file.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/device.h"
#include "lockstep/step/memory.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::Json;

base::CommandLine calibrate_line() {
  return {
      "bench calibrate",
      "",
      "times single operators of every class over their sizes on this device: what `bench fit` makes a calibration of",
      {{"--device", "NAME", "cpu (default) or cuda"},
       {"--threads", "N", "compute threads (default: the cores)"},
       {"--seconds", "N", "start no further case after this time (default 60, with a GPU 240)"},
       {"--seed", "N", "of the order of the cases (default 1)"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the rows, written now and then (- = standard output, at the end)"}},
      "lockstep bench calibrate --device cuda --json operators.json\n"};
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
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
