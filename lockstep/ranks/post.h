// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lockstep/comm/group.h"
#include "lockstep/ranks/keeper.h"
#include "lockstep/run/pulse.h"

namespace lockstep::ranks {

// Set for every rank that is watched over: which start it belongs to, and where its beats go when that is not the run.
constexpr const char* kWorldVariable = "LOCKSTEP_WORLD";
constexpr const char* kBeatsVariable = "LOCKSTEP_BEATS";

// What this process is to whoever watches over it; nothing when nobody does. Beats go into `run`, unless the
// environment names another folder.
std::optional<Post> my_post(const base::Path& run);

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
