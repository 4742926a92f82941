// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/measure/read_rings.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

base::CommandLine reads_line() {
  return {"bench reads",
          "[FOLDER]",
          "io_uring beside threads that pread, as the loader reads shards: random pieces of a file, cold and warm",
          {{"--bytes", "BYTES", "of the file that is made in FOLDER for it (default 1 GiB)"},
           {"--sizes", "BYTES,BYTES", "of the pieces (default 16 KiB,128 KiB,8 MiB)"},
           {"--depth", "N", "reads under way (default 64)"},
           {"--rounds", "N", "of each, in turns; the middle one counts (default 5)"},
           {"--here", "", "also on a login node"},
           {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
          "FOLDER lies on the file system in question; default: the current one.\n"
          "examples: lockstep bench reads /scratch --bytes 4GiB --json reads.json"};
}

}  // namespace

LOCKSTEP_BENCH(reads)(const std::vector<std::string>& words) {
  const base::CommandLine line = reads_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  refuse_bench_on_login_node("reads", words, arguments);
  measure::RingBench bench;
  if (!arguments.positional.empty()) bench.folder = arguments.only("folder");
  bench.file_bytes = base::parse_bytes(arguments.value_or("--bytes", "1 GiB"));
  if (const auto sizes = arguments.value("--sizes")) {
    bench.sizes.clear();
    for (const auto& word : base::split(*sizes, ',')) bench.sizes.push_back(base::parse_bytes(word));
  }
  bench.depth = static_cast<int>(arguments.int_or("--depth", bench.depth));
  bench.rounds = arguments.int_or("--rounds", bench.rounds);
  const measure::RingFigures figures = measure::bench_rings(bench);
  base::give(arguments, measure::ring_rows(bench, figures, bench_line("reads", words)), measure::ring_text(figures));
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
