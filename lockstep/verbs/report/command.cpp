// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/verbs/report/report.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::report {
namespace {

base::Json summary(const base::Json& data, const base::Path& out, size_t bytes) {
  base::Json result = base::Json::object();
  result["report"] = out.string();
  result["bytes"] = bytes;
  for (const char* key : {"name", "status", "samples_per_second", "time", "sessions", "slowness"}) {
    if (const base::Json* value = data.find(key)) result[key] = *value;
  }
  return result;
}

int report_several(const base::Arguments& arguments) {
  if (arguments.has("--weights")) {
    throw base::Error(base::Blame::user, "--weights is about one run", "leave it out, or give one run folder");
  }
  std::vector<run::RunPaths> runs;
  runs.reserve(arguments.positional.size());
  for (const auto& folder : arguments.positional) runs.push_back(run::open_run(folder));
  const base::Path out = arguments.value_or("--out", "comparison.html");
  const base::Json data = gather_comparison(runs);
  const std::string page = render_comparison(data);
  base::write_file(out, page);
  base::Json result = base::Json::object();
  result["report"] = out.string();
  result["bytes"] = page.size();
  result["differences"] = data.at("differences");
  result["runs"] = base::Json::array();
  for (const auto& run : data.at("runs").items()) {
    base::Json one = base::Json::object();
    for (const char* key : {"folder", "name", "status", "samples_per_second", "time", "slowness"}) {
      if (const base::Json* value = run.find(key)) one[key] = *value;
    }
    result["runs"].push_back(std::move(one));
  }
  base::give(arguments, result, out.string() + "\n");
  return 0;
}

}  // namespace

LOCKSTEP_VERB(report)(const std::vector<std::string>& words) {
  const base::CommandLine line{
      "report",
      "RUN [RUN...]",
      "one self-contained HTML page about a run, or about several beside each other",
      {{"--out", "FILE", "where to write the page; default RUN/report.html, of several runs comparison.html"},
       {"--weights", "WHICH", "best (default with validation), last, or a step: whose figures stand first"},
       {"--json", "FILE", "a summary as JSON (- = standard output)"}},
      "The page needs no network: mail it, keep it, open it in any browser.\n"
      "examples: lockstep report quickstart/run\n"
      "          lockstep report quickstart/run quickstart/run --out comparison.html"};
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  if (arguments.positional.size() > 1) return report_several(arguments);
  const run::RunPaths paths = run::open_run(arguments.only("run folder"));
  const base::Path out = arguments.value_or("--out", paths.report().string());
  const base::Json data = gather_report(paths, arguments.value_or("--weights", ""));
  const std::string page = render_report(data);
  base::write_file(out, page);
  base::give(arguments, summary(data, out, page.size()), out.string() + "\n");
  return 0;
}

}  // namespace lockstep::verbs::report
