// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ranks/launch.h"
#include "lockstep/ranks/verdict.h"

namespace lockstep::ranks {

// The signals of this process while it watches ranks: they wait here instead of interrupting. One at a time.
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  int take(double seconds) const;  // the next signal, 0 when none came in that time; SIGCHLD ends the waiting too

 private:
  sigset_t signals_, before_;
};

// A request to stop the supervisor and its ranks. It outlasts one start of the ranks.
struct StopWish {
  std::string why;     // "SIGTERM"; empty: none
  int interrupts = 0;  // Ctrl-Cs so far: the second ends the ranks without a save
};

// One start of the ranks.
struct WorldPlan {
  Launcher launcher = Launcher::open_mpi;
  std::vector<std::string> line;
  std::string name;  // in the heartbeats
  base::Path run;
  int64_t ranks = 1;
  Patience patience;
  std::function<void(const std::string&)> say = [](const std::string&) {};  // for people, about a stop
};

// How it went.
struct WorldEnd {
  int code = 0;                         // without a fault: the exit code for this run
  std::optional<Fault> fault;           // otherwise why it ended
  int64_t spoke = 0;                    // ranks that gave a sign of life
  std::optional<run::Heartbeat> first;  // the last heartbeat of rank 0, who writes the run folder
  double noticed = 0;                   // Unix seconds, of the fault
};

// Starts the ranks and watches them to their end, or ends them at the first fault. Every process of it on this host is
// gone when it returns.
WorldEnd run_world(const WorldPlan& plan, const SignalInbox& inbox, StopWish& wish);

}  // namespace lockstep::ranks
