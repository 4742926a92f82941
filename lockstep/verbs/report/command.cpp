// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/remote/away.h"
#include "lockstep/site/launch.h"
#include "lockstep/verbs/report/live.h"
#include "lockstep/verbs/report/report.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/watching/run_watch.h"
#include "lockstep/web/http/token.h"

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

std::atomic<bool> g_interrupted = false;

void interrupt(int /*signal*/) {
  g_interrupted = true;
}

void check_live_options(const base::Arguments& arguments) {
  if (!arguments.has("--live") && arguments.has("--port")) {
    throw base::Error(base::Blame::user, "--port is of --live", "add --live");
  }
  if (!arguments.has("--live")) return;
  for (const char* option : {"--out", "--weights", "--json"}) {
    if (!arguments.has(option)) continue;
    throw base::Error(base::Blame::user, base::text(option, " is of a page in a file, not of --live"),
                      base::text("leave ", option, " or --live out"));
  }
}

int serve_live(const base::Arguments& arguments) {
  const run::RunPaths paths = run::open_run(arguments.only("run folder"));
  const int64_t port = arguments.int_or("--port", 0);
  if (port < 0 || port > 65535) {
    throw base::Error(base::Blame::user, base::text("--port ", port, ": there is no such port"), "1024 to 65535");
  }
  const auto watch = std::make_shared<watching::RunWatch>(paths);
  watch->poll();  // what this user may not read is told now
  web::ServerOptions options;
  options.port = static_cast<int>(port);
  options.gate.token = web::random_token();
  options.gate.methods = {"GET", "HEAD"};
  options.max_body = 0;
  options.max_connections = 64;
  const std::string token = options.gate.token;
  web::Server server(std::move(options), live_handler(watch));
  struct sigaction action {};
  action.sa_handler = interrupt;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  std::fputs(live_words(site::host_name(), server.port(), token).c_str(), stdout);
  std::fflush(stdout);
  while (!g_interrupted) ::poll(nullptr, 0, 200);
  server.stop(std::chrono::seconds(1));
  return 0;
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
       {"--live", "", "serve a page that follows the run, on this host's loopback address, until Ctrl-C"},
       {"--port", "N", "of --live; any that is free"},
       {"--json", "FILE", "a summary as JSON (- = standard output)"}},
      "The page needs no network: mail it, keep it, open it in any browser.\n"
      "examples: lockstep report quickstart/run\n"
      "          lockstep report quickstart/run quickstart/run --out comparison.html"};
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  check_live_options(arguments);
  for (const auto& run : arguments.positional) remote::fetch_if_away(run);
  if (arguments.has("--live")) return serve_live(arguments);
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
