// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iostream>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/collectives.h"
#include "lockstep/measure/ddp.h"
#include "lockstep/site/cores.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

base::CommandLine ddp_line() {
  return {"bench ddp",
          "",
          "our overlapped reducer on CPU ranks beside PyTorch's DDP with gloo, in turns",
          {{"--ranks", "N", "CPU ranks of ours and of the peer's (default 2)"},
           {"--model", "NAME", "the network (default resnet18)"},
           {"--batch", "N", "samples a step, all ranks together (default 16)"},
           {"--image-size", "N", "pixels (default 224)"},
           {"--optimizer", "NAME", "sgd (default) or adamw"},
           {"--threads", "N", "compute threads of each rank, ours and the peer's (default: the cores / the ranks)"},
           {"--steps", "N", "steps of one round (default 4)"},
           {"--rounds", "N", "rounds, ours and the peer's in turns (default 5)"},
           {"--peer", "PYTHON", "a Python with torch, torchvision and timm to compare with"},
           {"--worker", "", "be one of our ranks, started by mpirun: obey the lines that rank 0 reads"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
          "lockstep bench ddp --ranks 2 --peer .deps/oracles/bin/python\n"};
}

spec::Job ddp_job(const base::Arguments& arguments, int64_t ranks) {
  base::Json document = synthetic_job(arguments, 16, 224);
  document["training"]["threads"] = arguments.int_or("--threads", site::cores_per_rank(site::usable_cores(), ranks));
  return spec::parse_job(document, {});
}

void print_ddp(const measure::DdpBench& bench, const measure::DdpTimes& times) {
  base::Table table({{"step of"}, {"ms", base::Align::right}, {"samples/s", base::Align::right}});
  const auto row = [&](const std::string& who, double seconds) {
    table.add({who, base::fixed(seconds * 1000, 1),
               base::fixed(static_cast<double>(bench.job.training.global_batch) / seconds, 1)});
  };
  row("lockstep", measure::median(times.ours));
  if (!times.peer.empty()) row("PyTorch DDP, gloo", measure::median(times.peer));
  std::printf("%s, batch %lld on %lld ranks of %lld threads\n%s", bench.job.model.name.c_str(),
              static_cast<long long>(bench.job.training.global_batch), static_cast<long long>(bench.ranks),
              static_cast<long long>(bench.job.training.threads), table.to_text().c_str());
  std::printf("all-reduce alone %.1f ms, a step waits %.1f ms: %s hidden behind backward\n", times.alone * 1000,
              measure::median(times.exposed) * 1000, base::percent(times.hidden_share(), 0).c_str());
  if (!times.peer.empty()) std::printf("ratio %.3f (above 1: lockstep is faster)\n", times.ratio());
}

}  // namespace

LOCKSTEP_BENCH(ddp)(const std::vector<std::string>& words) {
  const base::CommandLine line = ddp_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("ddp", words, arguments);
  measure::DdpBench bench;
  if (arguments.has("--worker")) {
    const auto group = comm::join_group();
    measure::serve_steps(ddp_job(arguments, group->size()), *group, std::cin, std::cout);
    return base::kExitDone;
  }
  bench.ranks = arguments.int_or("--ranks", bench.ranks);
  bench.steps = arguments.int_or("--steps", bench.steps);
  bench.rounds = arguments.int_or("--rounds", bench.rounds);
  if (bench.ranks < 1 || bench.steps < 1 || bench.rounds < 1) {
    throw base::Error(base::Blame::user, "--ranks, --steps and --rounds count from 1",
                      "leave them out for the defaults");
  }
  bench.job = ddp_job(arguments, bench.ranks);
  if (bench.job.training.global_batch < bench.ranks) {
    throw base::Error(base::Blame::user,
                      text("a batch of ", bench.job.training.global_batch, " for ", bench.ranks, " ranks"),
                      "give --batch at least as many samples as ranks");
  }
  bench.peer = arguments.value_or("--peer", "");
  std::vector<std::string> worker{"ddp", "--worker", "--here"};
  for (const char* name : {"--model", "--batch", "--image-size", "--optimizer", "--threads"}) {
    if (const auto value = arguments.value(name)) worker.insert(worker.end(), {name, *value});
  }
  bench.workers = measure::bench_in_ranks(worker, bench.ranks);
  bench.say = say_progress;
  const measure::DdpTimes times = measure::bench_ddp(bench);
  const base::Json rows = base::Json::array({measure::ddp_row(bench, times, bench_line("ddp", words))});
  if (!base::give_json(arguments, rows)) print_ddp(bench, times);
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
