// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/measure/bench.h"
#include "lockstep/measure/collectives.h"
#include "lockstep/ranks/launch.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

base::CommandLine collectives_line() {
  return {
      "bench collectives",
      "",
      "all-reduce of gradients over CPU ranks, alone",
      {{"--ranks", "N", "start N ranks on this machine with mpirun (default 2)"},
       {"--bytes", "SIZE", "of the gradient: \"102 MB\"; may be given again (default 4 KiB, 1 MiB, 25 MiB, 100 MiB)"},
       {"--precision", "NAME", "of the numbers that are added up: fp32 (default) or bf16"},
       {"--rounds", "N", "how often (default 10)"},
       {"--here", "", "also on a login node"},
       {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
      "lockstep bench collectives --ranks 2 --bytes 102MB\n"};
}

std::vector<int64_t> sizes_of(const base::Arguments& arguments) {
  std::vector<int64_t> sizes;
  for (const auto& words : arguments.values("--bytes")) sizes.push_back(base::parse_bytes(words));
  if (sizes.empty()) sizes = {4 << 10, 1 << 20, 25 << 20, 100 << 20};
  for (const int64_t size : sizes) {
    if (size < 4) throw base::Error(base::Blame::user, "--bytes of less than one number", "give 4 B or more");
  }
  return sizes;
}

}  // namespace

LOCKSTEP_BENCH(collectives)(const std::vector<std::string>& words) {
  const base::CommandLine line = collectives_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("collectives", words, arguments);
  const auto sizes = sizes_of(arguments);
  const int64_t ranks = arguments.int_or("--ranks", 2);
  const int64_t rounds = arguments.int_or("--rounds", 10);
  if (ranks < 1 || rounds < 1) {
    throw base::Error(base::Blame::user, "--ranks and --rounds count from 1", "leave them out for the defaults");
  }
  const std::string word = arguments.value_or("--precision", "fp32");
  if (word != "fp32" && word != "bf16") {
    throw base::Error(base::Blame::user, base::text("--precision ", word), "fp32 or bf16");
  }
  const auto precision = word == "bf16" ? spec::ReducePrecision::bf16 : spec::ReducePrecision::fp32;
  if (ranks > 1 && !comm::launched_by_mpi()) {
    std::vector<std::string> all{"collectives"};
    all.insert(all.end(), words.begin(), words.end());
    return ranks::run_ranks(measure::bench_in_ranks(all, ranks));
  }
  const auto group = comm::join_group();
  const auto times = measure::time_all_reduce(*group, sizes, rounds, precision);
  if (group->rank() != 0) return base::kExitDone;
  const auto rows = measure::collective_rows(times, group->size(), bench_line("collectives", words));
  if (base::give_json(arguments, rows)) return base::kExitDone;
  base::Table table({{"all-reduce of"}, {"ms", base::Align::right}, {"GB/s", base::Align::right}});
  for (const auto& time : times) {
    const double seconds = measure::median(time.seconds);
    table.add({base::format_bytes(static_cast<double>(time.bytes)), base::fixed(seconds * 1000, 3),
               base::fixed(static_cast<double>(time.bytes) / seconds / 1e9, 2)});
  }
  std::printf("%lld ranks\n%s", static_cast<long long>(group->size()), table.to_text().c_str());
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
