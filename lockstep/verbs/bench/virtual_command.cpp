// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/collectives.h"
#include "lockstep/measure/virtual_bench.h"
#include "lockstep/ranks/launch.h"
#include "lockstep/site/cores.h"
#include "lockstep/verbs/bench/bench_command.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::verbs::bench {
namespace {

base::CommandLine virtual_line() {
  return {"bench virtual",
          "[JOB]",
          "the step with training.virtual_ranks beside the plain one, in turns, as a ratio",
          {{"--model", "NAME", "without a job: the network (default resnet18)"},
           {"--batch", "N", "samples a step, all ranks (default 32)"},
           {"--image-size", "N", "pixels (default 64)"},
           {"--virtual-ranks", "N", "slices of a batch (default 8)"},
           {"--ranks", "N", "MPI ranks to start (default 1)"},
           {"--threads", "N", "compute threads of a rank (default: cores / ranks)"},
           {"--steps", "N", "steps of one round (default 4)"},
           {"--rounds", "N", "rounds, both ways in turns (default 5)"},
           {"--set", "KEY=VALUE", "override a key of the job"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
          "lockstep bench virtual --model resnet18 --ranks 2\n"};
}

spec::Job virtual_job(const base::Arguments& arguments) {
  if (!arguments.positional.empty()) return weights::load_job(arguments.only("job"), arguments.values("--set")).job;
  base::Json document = synthetic_job(arguments, 32, 64);
  document["training"]["virtual_ranks"] = arguments.int_or("--virtual-ranks", 8);
  return spec::parse_job(document, arguments.values("--set"));
}

measure::VirtualBench virtual_bench(const base::Arguments& arguments, const comm::Group& group) {
  measure::VirtualBench bench;
  bench.job = virtual_job(arguments);
  if (bench.job.model.classes == 0) bench.job.model.classes = 1000;
  bench.job.training.threads = arguments.int_or("--threads", site::cores_per_rank(site::usable_cores(), group.size()));
  bench.steps = arguments.int_or("--steps", bench.steps);
  bench.rounds = arguments.int_or("--rounds", bench.rounds);
  if (bench.job.training.virtual_ranks == 0 || bench.steps < 1 || bench.rounds < 1) {
    throw base::Error(base::Blame::user, "nothing to measure: virtual ranks, steps and rounds count from 1",
                      "for example --virtual-ranks 8");
  }
  if (group.rank() == 0) bench.say = say_progress;
  return bench;
}

}  // namespace

LOCKSTEP_BENCH(virtual)(const std::vector<std::string>& words) {
  const base::CommandLine line = virtual_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("virtual", words, arguments);
  const int64_t ranks = arguments.int_or("--ranks", 1);
  if (ranks > 1 && !comm::launched_by_mpi()) {
    std::vector<std::string> inner{"virtual"};
    inner.insert(inner.end(), words.begin(), words.end());
    return ranks::run_ranks(measure::bench_in_ranks(inner, ranks));
  }
  const auto group = comm::join_group();
  const measure::VirtualBench bench = virtual_bench(arguments, *group);
  const measure::VirtualTimes times = measure::bench_virtual(bench, *group);
  if (group->rank() != 0) return base::kExitDone;
  std::string command = bench_line("virtual", words);
  if (group->size() > 1) command += " --ranks " + std::to_string(group->size());  // the launcher took it away
  if (base::give_json(arguments, base::Json::array({measure::virtual_row(bench, times, group->size(), command)}))) {
    return base::kExitDone;
  }
  std::printf("%s, batch %lld, %lld virtual ranks on %lld: %.1f samples/s, plain %.1f, ratio %.3f\n",
              bench.job.model.name.c_str(), static_cast<long long>(bench.job.training.global_batch),
              static_cast<long long>(bench.job.training.virtual_ranks), static_cast<long long>(group->size()),
              static_cast<double>(bench.job.training.global_batch) / measure::median(times.sliced),
              static_cast<double>(bench.job.training.global_batch) / measure::median(times.plain), times.ratio());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
