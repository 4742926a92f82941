// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/scaling_report.h"
#include "lockstep/site/cores.h"
#include "lockstep/verbs/bench/bench_command.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::bench {
namespace {

using base::Blame;
using base::Error;
using base::text;

base::CommandLine scaling_line() {
  return {
      "bench scaling",
      "JOB",
      "a job on more and more ranks: rate, efficiency with its spread, communication hidden, planned beside measured",
      {{"--ranks", "LIST", "points: 1,2,4 (default); the first is what efficiency is counted from"},
       {"--strong", "", "the job as it is, its batch shared (default)"},
       {"--weak", "", "the batch multiplied by the ranks, the steps divided; both are recorded"},
       {"--repeats", "N", "runs of each point (default 2)"},
       {"--threads", "N", "compute threads of each rank (default: the cores / the most ranks)"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--set", "KEY=VALUE", "override a key of the job, for every point"},
       {"--out", "DIR", "runs, points, scaling.json (to embed), scaling.html (default runs/<job>-scaling)"},
       {"--array", "", "write OUT/array.sh instead: one point a task of a job array"},
       {"--collect", "", "run nothing: report the points that OUT has"},
       {"--simulate", "LIST", "forecast more ranks from the measured step and link: 16,64,256,1024"},
       {"--inter-rate", "RATE", "of the simulated network, e.g. \"10 GB/s\" (default: the link measured here)"},
       {"--beside", "TABLE", "somebody's measured table (docs/formats/measured_table.md) beside the model"},
       {"--seconds", "N", "that one run may take (default a day)"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
      "lockstep bench scaling job.json --ranks 1,2,4 --weak\n"};
}

std::vector<int64_t> rank_list(const std::string& option, const std::string& words) {
  std::vector<int64_t> ranks;
  for (const auto& word : base::split(words, ',')) {
    size_t used = 0;
    int64_t number = 0;
    try {
      number = std::stoll(std::string(word), &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != word.size() || number < 1) {
      throw Error(Blame::user, text(option, " ", words, ": '", word, "' is no number of ranks"), "1,2,4");
    }
    ranks.push_back(number);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

measure::ScalingBench scaling_bench(const base::Arguments& arguments) {
  measure::ScalingBench bench;
  bench.job_file = arguments.only("job file");
  bench.set = arguments.values("--set");
  bench.job = weights::load_job(bench.job_file, bench.set).job;
  bench.ranks = rank_list("--ranks", arguments.value_or("--ranks", "1,2,4"));
  if (arguments.has("--weak") && arguments.has("--strong")) {
    throw Error(Blame::user, "--weak and --strong at once", "run them one after the other, into the same --out");
  }
  bench.mode = arguments.has("--weak") ? measure::ScalingMode::weak : measure::ScalingMode::strong;
  bench.repeats = arguments.int_or("--repeats", bench.repeats);
  bench.threads = arguments.int_or("--threads", site::cores_per_rank(site::usable_cores(), bench.ranks.back()));
  if (bench.repeats < 1 || bench.threads < 1) {
    throw Error(Blame::user, "--repeats and --threads count from 1", "leave them out for the defaults");
  }
  if (bench.mode == measure::ScalingMode::strong && bench.job.training.global_batch < bench.ranks.back()) {
    throw Error(Blame::user,
                text("a global batch of ", bench.job.training.global_batch, " cannot be shared by ", bench.ranks.back(),
                     " ranks"),
                "fewer ranks, --weak, or --set training.global_batch=N");
  }
  bench.device = arguments.value_or("--device", "cpu");
  bench.out = arguments.value_or("--out", text("runs/", bench.job.name, "-scaling"));
  bench.seconds = static_cast<double>(arguments.int_or("--seconds", 86'400));
  bench.say = say_progress;
  return bench;
}

// The points as they were measured, wherever they are collected.
void take_collected(measure::ScalingReport& report) {
  measure::ScalingBench& bench = report.bench;
  report.points = measure::collect_scaling_points(bench.out, bench.mode);
  report.link = measure::kept_link(bench.out);
  std::vector<std::string> machines;
  for (const auto& point : report.points) {
    if (point.threads > 0) bench.threads = point.threads;  // the same for all that state it
    const bool told = std::find(machines.begin(), machines.end(), point.machine) != machines.end();
    if (!told && !point.machine.empty()) machines.push_back(point.machine);
  }
  if (!machines.empty()) report.machine = base::join(machines, "; ");
}

// `blame`: whose it is that a link is missing.
void refuse_simulation(const measure::ScalingReport& report, Blame blame) {
  if (report.simulated.empty()) return;
  if (const std::string why = measure::why_not_simulated(report); !why.empty()) {
    throw Error(report.points[0].ranks == 1 && report.points[0].gradient_bytes > 0 ? blame : Blame::user,
                text("--simulate: ", why),
                "leave --simulate out, or give what is missing, with --collect: the points are kept");
  }
}

}  // namespace

LOCKSTEP_BENCH(scaling)(const std::vector<std::string>& words) {
  const base::CommandLine line = scaling_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  measure::ScalingReport report;
  report.bench = scaling_bench(arguments);
  report.command = bench_line("scaling", words);
  report.machine = measure::machine_name(report.bench.device == "cpu" ? at::kCPU : at::kCUDA);
  if (const auto ranks = arguments.value("--simulate")) report.simulated = rank_list("--simulate", *ranks);
  if (const auto rate = arguments.value("--inter-rate")) report.inter_rate = base::parse_rate(*rate);
  if (const auto file = arguments.value("--beside"))
    report.beside = advice::parse_measured(base::read_json(*file)).tables;
  const base::Path& out = report.bench.out;
  if (arguments.has("--array")) {
    std::filesystem::create_directories(out);
    base::write_file(out / "array.sh", measure::array_script(report.bench, words));
    std::printf("%s: one point a task; submit it, then --collect\n", (out / "array.sh").c_str());
    if (report.bench.device == "cpu" && !arguments.has("--threads")) {
      std::printf("%lld threads a rank, by the cores of this machine; --threads N where the nodes have others\n",
                  static_cast<long long>(report.bench.threads));
    }
    return base::kExitDone;
  }
  if (arguments.has("--collect")) {
    take_collected(report);
    refuse_simulation(report, Blame::user);
  } else {
    if (!report.simulated.empty() && report.bench.ranks[0] != 1) {
      throw Error(Blame::user, text("--simulate, but no point of one rank: the first has ", report.bench.ranks[0]),
                  text("--ranks 1,", arguments.value_or("--ranks", "")));
    }
    if (!report.simulated.empty() && report.bench.device != "cpu" && report.inter_rate <= 0) {
      throw Error(Blame::user, "--simulate: the link between GPUs is not measured", "--inter-rate \"10 GB/s\"");
    }
    refuse_bench_on_login_node("scaling", words, arguments);
    for (const int64_t ranks : report.bench.ranks)
      report.points.push_back(measure::run_scaling_point(report.bench, ranks));
    const bool asks_for_link = report.bench.ranks.back() > 1 || (!report.simulated.empty() && report.inter_rate <= 0);
    if (asks_for_link) report.link = measure::measure_link(report.bench, report.points[0].gradient_bytes);
    if (report.link) measure::keep_link(out, *report.link);
  }
  base::write_json(out / "scaling.json", measure::scaling_table(report));
  base::write_file(out / "scaling.svg", measure::scaling_svg(report));
  base::write_file(out / "scaling.html", measure::scaling_page(report));
  refuse_simulation(report, Blame::machine);  // too busy; what was measured is written: --collect goes on from it
  if (base::give_json(arguments, measure::scaling_rows(report))) return base::kExitDone;
  std::printf("%s\nto embed: %s; page with plot: %s\n", advice::to_text(measure::scaling_paper(report)).c_str(),
              (out / "scaling.json").c_str(), (out / "scaling.html").c_str());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
