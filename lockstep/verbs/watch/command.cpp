// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/arguments.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/remote/away.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/verbs/watch/watch.h"
#include "lockstep/watching/frame.h"

namespace lockstep::verbs::watch {
namespace {

using base::text;
using watching::FrameOptions;
using watching::Snapshot;

std::atomic<bool> g_ended = false;  // by a signal
std::atomic<bool> g_resized = false;

void on_signal(int number) {
  (number == SIGWINCH ? g_resized : g_ended) = true;
}

void take_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: a pause ends at once
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaction(number, &action, nullptr);
}

bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string lower = value;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

FrameOptions screen_options(bool terminal) {
  FrameOptions options;
  options.letters = speaks_unicode() ? watching::Letters::unicode : watching::Letters::ascii;
  const char* kind = std::getenv("TERM");
  options.colors = terminal && !std::getenv("NO_COLOR") && kind && std::string_view(kind) != "dumb";
  winsize size{};
  if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
    options.height = std::max<int>(2, size.ws_row);
  }
  return options;
}

void write_raw(std::string_view bytes) {
  std::fflush(stdout);
  while (!bytes.empty()) {  // not through `stdout`, which lets no cursor movement pass
    const ssize_t put = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) return;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(put, 0)));
  }
}

// The terminal's second screen, so that what stood there comes back.
class Screen {
 public:
  Screen() { write_raw("\x1b[?1049h\x1b[?25l"); }
  ~Screen() { write_raw("\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void draw(const std::string& frame) {
    std::string bytes = "\x1b[H";
    for (const char c : frame) {
      if (c == '\n') bytes += "\x1b[K\r";  // what stood there before
      bytes += c;
    }
    if (bytes.ends_with('\n')) bytes.pop_back();  // the last line of the screen must not scroll it
    write_raw(bytes + "\x1b[J");
  }
};

Pause pause_for(double seconds) {
  return [seconds] {
    const double until = base::steady_seconds() + seconds;
    for (double left = seconds; left > 0 && !g_ended && !g_resized.exchange(false);
         left = until - base::steady_seconds()) {
      ::poll(nullptr, 0, std::max(1, static_cast<int>(1000 * left)));
    }
    return !g_ended;
  };
}

// A run that was submitted with --via is fetched again before each look, a few seconds apart: each time is a login
// there.
Pause pause_and_fetch(const Pause& pause, Fetching& fetching) {
  constexpr double kBetweenLogins = 10;
  return [pause, &fetching, fetched = base::steady_seconds()]() mutable {
    if (!pause()) return false;
    if (base::steady_seconds() - fetched >= kBetweenLogins) {
      fetching.fetch_all();
      fetched = base::steady_seconds();
    }
    return true;
  };
}

// On a terminal a screen, else lines for a log: one whenever something has changed, and the whole frame at the end.
int follow(std::vector<watching::RunWatch>& runs, const Pause& pause, const Fetching& fetching, bool quiet,
           std::vector<Snapshot>& last) {
  const bool terminal = !quiet && ::isatty(STDOUT_FILENO) == 1;
  std::unique_ptr<Screen> screen;
  std::vector<std::string> shown(runs.size());
  double shown_at = 0;
  const int code = follow_runs(
      runs,
      [&](const std::vector<Snapshot>& all) {
        last = all;
        for (const auto& [run, trouble] : fetching.troubles()) {
          for (auto& one : last) {
            if (one.folder == run) one.warnings.push_back(text("as last fetched: ", trouble));
          }
        }
        if (quiet) return;
        if (terminal) {
          if (!screen) screen = std::make_unique<Screen>();
          return Screen::draw(draw_frame(last, screen_options(true)));
        }
        constexpr double kBetweenLines = 10;
        if (base::steady_seconds() - shown_at < kBetweenLines && shown_at > 0) return;
        shown_at = base::steady_seconds();
        for (size_t i = 0; i < all.size(); ++i) {
          std::string line = draw_line(all[i]);
          if (line == shown[i]) continue;
          std::fputs((line + "\n").c_str(), stdout);
          shown[i] = std::move(line);
        }
        std::fflush(stdout);
      },
      pause);
  screen.reset();
  return code;
}

base::Json json_of(const std::vector<Snapshot>& all) {
  base::Json json = base::Json::object();
  json["runs"] = base::Json::array();
  for (const auto& one : all) json["runs"].push_back(to_json(one));
  return json;
}

std::string last_frame(const std::vector<Snapshot>& all) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  FrameOptions options = screen_options(terminal);
  options.height = 0;
  options.colors = false;  // through `stdout`, which lets no escape sequence pass
  return draw_frame(all, options);
}

double seconds_of(const base::Arguments& arguments) {
  const std::string word = arguments.value_or("--every", "2");
  char* end = nullptr;
  const double seconds = std::strtod(word.c_str(), &end);
  if (end == word.c_str() || *end != '\0' || !(seconds >= 0.1) || seconds > 3600) {
    throw base::Error(base::Blame::user, text("--every ", word, ": seconds are expected, 0.1 to 3600"),
                      "for example: --every 5");
  }
  return seconds;
}

}  // namespace

LOCKSTEP_VERB(watch)(const std::vector<std::string>& words) {
  const base::CommandLine line{
      "watch",
      "RUN [RUN...]",
      "a run in the terminal while it goes on, and why it is not faster",
      {{"--once", "", "one frame, then done; exit code 0 whatever the run does"},
       {"--every", "SECONDS", "between two looks; 2"},
       {"--json", "FILE", "what was seen last, as JSON (- = standard output, without the text)"}},
      "Reads the run's folder alone, without a lock: any host that sees it will do, a login node too. Ends with the\n"
      "run: 0 finished, 85 stopped in order, 3 broke off. Ctrl-C ends the watching (130), never the run.\n"
      "examples: lockstep watch runs/a runs/b\n"
      "          lockstep watch quickstart/run --once"};
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  if (arguments.positional.empty()) {
    throw base::Error(base::Blame::user, "a run folder is expected", "lockstep watch RUN");
  }
  const double every = seconds_of(arguments);
  for (const auto& run : arguments.positional) remote::fetch_if_away(run);
  std::vector<watching::RunWatch> runs;
  runs.reserve(arguments.positional.size());
  for (const auto& folder : arguments.positional) runs.emplace_back(run::open_run(folder));
  std::vector<Snapshot> last;
  int code = 0;
  if (arguments.has("--once")) {
    last = look_at(runs);
  } else {
    take_signals();
    const bool quiet = arguments.value_or("--json", "") == "-";
    const bool screen = !quiet && ::isatty(STDOUT_FILENO) == 1;
    Fetching fetching(arguments.positional, remote::fetch_if_away, [screen](const std::string& words) {
      if (!screen) std::fprintf(stderr, "lockstep watch: %s\n", words.c_str());  // on a screen it is a warning
    });
    code = follow(runs, pause_and_fetch(pause_for(every), fetching), fetching, quiet, last);
  }
  base::give(arguments, json_of(last), last_frame(last));
  return code;
}

}  // namespace lockstep::verbs::watch
