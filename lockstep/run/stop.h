// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::run {

// The signals that ask a training to save and stop: Ctrl-C, SIGTERM, SIGUSR1 (schedulers send it ahead of the
// walltime), SIGHUP (the session was lost), SIGXCPU (the limit on processor time), SIGPIPE (nobody reads what it
// prints). Without those of the last three that whoever started us has them ignored: `nohup` means to go on.
std::vector<int> stop_signals();
std::string stop_signal_name(int signal);  // "Ctrl-C", "SIGTERM"; "" for any other

enum class Acknowledge { silently, on_stderr };

// While it lives, stop_signals() only set a flag that the training loop asks for between steps; a second Ctrl-C ends
// the process at once. Acknowledged in words as soon as the signal comes, if wanted. One at a time in a process.
// SIGPIPE stays ignored behind it: the last words to a reader who is gone must not change the exit code.
class StopSignals {
 public:
  explicit StopSignals(Acknowledge acknowledge = Acknowledge::silently);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int received() const;      // the first signal that came, 0 for none
  std::string name() const;  // of that one, "" for none

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace lockstep::run
