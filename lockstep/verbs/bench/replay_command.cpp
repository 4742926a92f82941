// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/measure/replay_rows.h"
#include "lockstep/verbs/bench/bench_command.h"

namespace lockstep::verbs::bench {
namespace {

using base::Align;

base::CommandLine replay_line() {
  return {
      "bench replay",
      "RECORDING...",
      "recorded allocator streams against the GPU's own peaks; with settings: what another GPU would have done",
      {{"--capacity", "SIZE", "a GPU of this size: \"24 GiB\""},
       {"--expandable-segments", "yes|no", "the allocator's setting"},
       {"--max-split-size", "SIZE", "likewise"},
       {"--roundup-power2-divisions", "N", "likewise"},
       {"--garbage-collection-threshold", "SHARE", "likewise, with --memory-fraction"},
       {"--memory-fraction", "SHARE", "of the GPU that the process may take"},
       {"--json", "FILE", "the result as JSON rows (- = standard output)"}},
      "A folder stands for its *.rec files. Record a run of your own with lockstep.from_snapshot (python/README.md).\n"
      "lockstep bench replay results/recordings\n"
      "lockstep bench replay mine.rec --capacity \"24 GiB\" --expandable-segments yes\n"};
}

std::optional<double> share_of(const base::Arguments& arguments, const std::string& option) {
  const auto words = arguments.value(option);
  if (!words) return std::nullopt;
  char* end = nullptr;
  const double share = std::strtod(words->c_str(), &end);
  if (words->empty() || *end != '\0' || !(share > 0 && share <= 1)) {
    throw base::Error(base::Blame::user, base::text(option, " '", *words, "' is no share"), "write 0.8");
  }
  return share;
}

measure::OtherSettings other_settings(const base::Arguments& arguments) {
  measure::OtherSettings other;
  if (const auto size = arguments.value("--capacity")) other.capacity = base::parse_bytes(*size);
  if (const auto size = arguments.value("--max-split-size")) other.max_split_size = base::parse_bytes(*size);
  if (const auto words = arguments.value("--expandable-segments")) {
    if (*words != "yes" && *words != "no") {
      throw base::Error(base::Blame::user, base::text("--expandable-segments '", *words, "'"), "write yes or no");
    }
    other.expandable_segments = *words == "yes";
  }
  if (arguments.has("--roundup-power2-divisions")) {
    other.roundup_power2_divisions = arguments.int_or("--roundup-power2-divisions", 0);
  }
  other.garbage_collection_threshold = share_of(arguments, "--garbage-collection-threshold");
  other.memory_fraction = share_of(arguments, "--memory-fraction");
  return other;
}

std::string gigabytes(int64_t bytes) {
  return base::fixed(static_cast<double>(bytes) / 1e9, 3);
}

void print_streams(const std::vector<measure::ReplayedStream>& streams) {
  const bool other = streams.front().other.has_value();
  std::vector<base::Column> columns = {{"recording"},
                                       {"events", Align::right},
                                       {"allocated GB", Align::right},
                                       {"reserved GB", Align::right},
                                       {"to the byte"},
                                       {"without addresses", Align::right}};
  if (other) {
    columns.push_back({"then reserved GB", Align::right});
    columns.push_back({"and"});
  }
  base::Table table(columns);
  for (const auto& stream : streams) {
    std::vector<std::string> cells = {stream.name,
                                      base::format_count(stream.own.num_events),
                                      gigabytes(stream.own.peaks.allocated),
                                      gigabytes(stream.own.peaks.reserved),
                                      stream.exact() ? "yes" : "NO",
                                      base::percent(stream.modelled_error(), 3)};
    if (other) {
      cells.push_back(gigabytes(stream.other->peaks.reserved));
      cells.push_back(stream.other->out_of_memory_at
                          ? base::text("out of memory at event ", *stream.other->out_of_memory_at)
                          : base::text("fits", stream.other->num_retries ? ", with the cache given back" : ""));
    }
    table.add(cells);
  }
  std::fputs(table.to_text().c_str(), stdout);
}

}  // namespace

LOCKSTEP_BENCH(replay)(const std::vector<std::string>& words) {
  const base::CommandLine line = replay_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), base::kExitDone;
  if (arguments.positional.empty()) {
    throw base::Error(base::Blame::user, "which recordings?", "lockstep bench replay results/recordings");
  }
  const auto streams =
      measure::replay_streams({arguments.positional.begin(), arguments.positional.end()}, other_settings(arguments));
  base::Json rows = base::Json::array();
  for (const auto& stream : streams) rows.push_back(measure::replay_row(stream, bench_line("replay", words)));
  if (base::give_json(arguments, rows)) return base::kExitDone;
  print_streams(streams);
  return base::kExitDone;
}

}  // namespace lockstep::verbs::bench
