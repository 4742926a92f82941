// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/ranks/verdict.h"
#include "lockstep/ranks/world.h"

namespace lockstep::ranks {

// Decides whether the ranks are started once more. Progress means a newer checkpoint: without one the same steps would
// only be repeated.
class RestartRule {
 public:
  static constexpr int64_t kFruitless = 2;

  explicit RestartRule(int64_t most) : most_(most) {}
  // After a fault, with the step of the newest checkpoint (0: none): empty, or why not.
  std::string refusal(int64_t saved_step) const;
  void count(int64_t saved_step);
  int64_t done() const { return done_; }

 private:
  int64_t most_;
  int64_t done_ = 0;
  int64_t fruitless_ = 0;  // in a row, from the same checkpoint
  int64_t saved_step_ = -1;
};

// What the ranks of a run will go on from, as far as it can be told without reading every checkpoint.
struct Saved {
  int64_t step = 0;
  double time = 0;  // Unix seconds; of the first event when nothing was saved
};
Saved newest_save(const base::Path& run);

// The hosts that ranks run on, and those that no longer do. Without a scheduler's hosts there is this one alone, which
// is never left out.
class Hosts {
 public:
  Hosts(int64_t ranks, std::vector<std::string> hosts);

  int64_t ranks() const { return ranks_; }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<site::Share> shares() const;  // empty: this host alone
  // Leaves a host out with the ranks that it had, unless it is the last. True when it did.
  bool leave_out(const std::string& host);
  const std::vector<std::string>& left_out() const { return left_out_; }
  // A rank ended or hung on that host. One such fault may be bad luck. True when it is time to leave the host out.
  bool blame(const std::string& host);
  // Those left out, and the host of the last fault (unknown: empty), by their names in the allocation; none outside
  // one.
  std::vector<std::string> to_blame(const std::string& host, std::vector<std::string> allocated) const;

 private:
  int64_t ranks_;
  std::vector<std::string> names_, left_out_, blamed_;
};

// The hosts that do not answer now. Few are asked at a time: many programs started at once can make a busy host fail
// for all of them. Empty when none answers: then the fault is on the asking host.
std::vector<std::string> dead_hosts(const std::vector<std::string>& hosts,
                                    const std::function<bool(const std::string&)>& answers);

struct Supervision {
  std::vector<std::string> command;  // what every rank runs, behind the launcher's words
  base::Path run;
  int64_t ranks = 2;
  Meet meet = Meet::by_mpi;
  int64_t restarts = 10;
  std::string goes_on = "from the checkpoint of step ";  // where a restart does, in words before the number
  bool fewer_nodes = false;                              // begin also when ranks start on some of the hosts only
  Patience patience;
  double wait_for_folder = 5;  // seconds: the ranks of a supervisor that was just killed need some to go
  std::function<void(const std::string&)> say;  // one line for people
};

// Starts the ranks over the hosts of this allocation, or on this host, and starts them again from the newest good
// checkpoint after a fault, with the hosts that remain. Hosts on which ranks cannot be started at all, from the first
// start on, end it (a machine error) unless fewer_nodes: somebody pays for all of them. Returns the exit code of the
// run: of the ranks when they ended by themselves, 85 when a wish to stop and a fault came together. Machine error when
// the rule refuses another start, and an event gave_up in the journal for whoever could start the run elsewhere.
int supervise(const Supervision& supervision);

// Set for every rank that a supervisor starts: when it began (Unix seconds), and how many starts there were before.
constexpr const char* kSinceVariable = "LOCKSTEP_SINCE";
constexpr const char* kRestartVariable = "LOCKSTEP_RESTART";

}  // namespace lockstep::ranks
