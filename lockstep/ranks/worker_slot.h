// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/comm/group.h"
#include "lockstep/ranks/watchdog.h"
#include "lockstep/run/pulse.h"

namespace lockstep::ranks {

// Set for every supervised rank: which start it belongs to, and the folder of its heartbeats where that is not the run.
constexpr const char* kWorldVariable = "LOCKSTEP_WORLD";
constexpr const char* kHeartbeatsVariable = "LOCKSTEP_HEARTBEATS";

// The worker slot of this process; nothing when it is not supervised. Heartbeats go into `run`, unless the environment
// names another folder.
std::optional<WorkerSlot> my_worker_slot(const base::Path& run);

// Why to stop, of a rank that heard `signal`: what a supervisor passed on as SIGUSR1 goes by its own name.
std::string stop_reason(const std::string& signal, const base::Path& run);

// The rank's calls, told to whoever watches for as long as the group lives.
class CallsWatched {
 public:
  CallsWatched(run::Activity& activity, const comm::Group& group);
  ~CallsWatched() { activity_.watch_calls({}); }
  CallsWatched(const CallsWatched&) = delete;
  CallsWatched& operator=(const CallsWatched&) = delete;

 private:
  run::Activity& activity_;
};

}  // namespace lockstep::ranks
