// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/stop.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

struct StopSignal {
  int number;
  std::string_view name;
  std::string_view words;  // at once; whole, because a handler may not put strings together
  bool may_be_ignored;     // by whoever started us
};

constexpr StopSignal kSignals[] = {
    {SIGINT, "Ctrl-C", "Ctrl-C: stopping after this step, then saving; Ctrl-C again ends it at once, unsaved\n", false},
    {SIGTERM, "SIGTERM", "SIGTERM: stopping after this step, then saving\n", false},
    {SIGUSR1, "SIGUSR1", "SIGUSR1: stopping after this step, then saving\n", false},
    {SIGHUP, "SIGHUP", "SIGHUP, the session was lost: stopping after this step, then saving\n", true},
    {SIGXCPU, "SIGXCPU", "SIGXCPU, the processor time is used up: stopping after this step, then saving\n", true},
    {SIGPIPE, "SIGPIPE", "SIGPIPE, nobody reads what this prints: stopping after this step, then saving\n", true},
};
constexpr std::string_view kAtOnce = "second Ctrl-C: ended at once; the steps since the newest checkpoint are lost\n";

// A handler may touch nothing but lock-free atomics.
std::atomic<int> g_received{0};
std::atomic<bool> g_installed{false};
std::atomic<bool> g_speaks{false};
std::atomic<bool> g_terminal{false};
static_assert(std::atomic<int>::is_always_lock_free);

const StopSignal* row_of(int signal) {
  const auto* found = std::find_if(std::begin(kSignals), std::end(kSignals),
                                   [&](const StopSignal& row) { return row.number == signal; });
  return found == std::end(kSignals) ? nullptr : found;
}

void speak(std::string_view words) {
  if (!g_speaks) return;
  if (g_terminal) static_cast<void>(!::write(STDERR_FILENO, "\n", 1));  // the line of progress, and "^C"
  static_cast<void>(!::write(STDERR_FILENO, words.data(), words.size()));
}

extern "C" void on_stop_signal(int signal) {
  const int kept = errno;
  int none = 0;
  const bool first = g_received.compare_exchange_strong(none, signal);
  if (first) speak(row_of(signal)->words);
  if (!first && signal == SIGINT && none == SIGINT) {
    speak(kAtOnce);
    ::_exit(128 + SIGINT);
  }
  errno = kept;
}

}  // namespace

std::vector<int> stop_signals() {
  std::vector<int> all;
  for (const StopSignal& row : kSignals) {
    struct sigaction now {};
    if (row.may_be_ignored && ::sigaction(row.number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    all.push_back(row.number);
  }
  return all;
}

std::string stop_signal_name(int signal) {
  const StopSignal* row = row_of(signal);
  return row ? std::string(row->name) : "";
}

StopSignals::StopSignals(Acknowledge acknowledge) {
  base::ensure(!g_installed.exchange(true), "one StopSignals at a time");
  g_received = 0;
  g_speaks = acknowledge == Acknowledge::on_stderr;
  g_terminal = ::isatty(STDERR_FILENO) == 1;
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : stop_signals()) {
    struct sigaction before {};
    ::sigaction(signal, &action, &before);
    before_.emplace_back(signal, before);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [signal, before] : before_) ::sigaction(signal, &before, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  g_installed = false;
}

int StopSignals::received() const {
  return g_received;
}

std::string StopSignals::name() const {
  return stop_signal_name(received());
}

}  // namespace lockstep::run
