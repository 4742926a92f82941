// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/stop.h"

#include <unistd.h>

#include <atomic>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

// A handler may touch nothing but lock-free atomics.
std::atomic<int> g_received{0};
std::atomic<bool> g_installed{false};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_stop_signal(int signal) {
  int none = 0;
  const bool first = g_received.compare_exchange_strong(none, signal);
  if (!first && signal == SIGINT && none == SIGINT) ::_exit(128 + SIGINT);
}

}  // namespace

StopSignals::StopSignals() {
  base::ensure(!g_installed.exchange(true), "one StopSignals at a time");
  g_received = 0;
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  g_installed = false;
}

int StopSignals::received() const {
  return g_received;
}

std::string StopSignals::name() const {
  switch (received()) {
    case SIGINT:
      return "Ctrl-C";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "";
  }
}

}  // namespace lockstep::run
