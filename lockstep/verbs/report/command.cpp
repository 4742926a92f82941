// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/file.h"
#include "lockstep/verbs/report/report.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::report {
namespace {

base::Json summary(const base::Json& data, const base::Path& out, size_t bytes) {
  base::Json result = base::Json::object();
  result["report"] = out.string();
  result["bytes"] = bytes;
  for (const char* key : {"name", "status", "samples_per_second", "time", "sessions"}) {
    if (const base::Json* value = data.find(key)) result[key] = *value;
  }
  return result;
}

}  // namespace

LOCKSTEP_VERB(report)(const std::vector<std::string>& words) {
  const base::CommandLine line{
      "report",
      "RUN",
      "one self-contained HTML page about a run",
      {{"--out", "FILE", "where to write the page; default RUN/report.html"},
       {"--weights", "WHICH", "best (default with validation), last, or a step: whose figures stand first"},
       {"--json", "FILE", "a summary as JSON (- = standard output)"}},
      "The page needs no network: mail it, keep it, open it in any browser.\n"
      "examples: lockstep report quickstart/run"};
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  const run::RunPaths paths = run::open_run(arguments.only("run folder"));
  const base::Path out = arguments.value_or("--out", paths.report().string());
  const base::Json data = gather_report(paths, arguments.value_or("--weights", ""));
  const std::string page = render_report(data);
  base::write_file(out, page);
  base::give(arguments, summary(data, out, page.size()), out.string() + "\n");
  return 0;
}

}  // namespace lockstep::verbs::report
