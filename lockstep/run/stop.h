// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>

namespace lockstep::run {

// While it lives, SIGINT, SIGTERM and SIGUSR1 (schedulers send it ahead of the walltime) only set a flag that the
// training loop asks for between steps; a second Ctrl-C ends the process at once. One at a time in a process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int received() const;  // the first signal that came, 0 for none
  // "Ctrl-C", "SIGTERM", "SIGUSR1"; "" for none.
  std::string name() const;

 private:
  struct sigaction before_[3];
};

}  // namespace lockstep::run
