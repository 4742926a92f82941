// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/worker_slot.h"

#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/comm/call_record.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/launch.h"

namespace lockstep::ranks {

std::optional<WorkerSlot> my_worker_slot(const base::Path& run) {
  const char* world = std::getenv(kWorldVariable);
  if (!world) return std::nullopt;
  const char* heartbeats = std::getenv(kHeartbeatsVariable);
  const base::Path folder = heartbeats ? base::Path(heartbeats) : run;
  const int64_t rank = site::read_launch().rank;
  return WorkerSlot{world, rank, run::heartbeat_path(folder, rank), run::world_path(folder), run::stop_path(folder)};
}

std::string stop_reason(const std::string& signal, const base::Path& run) {
  if (signal != run::stop_signal_name(SIGUSR1) || !my_worker_slot(run)) return signal;
  const char* heartbeats = std::getenv(kHeartbeatsVariable);
  try {
    const std::string passed_on = base::read_file(run::stop_path(heartbeats ? base::Path(heartbeats) : run), 64);
    return passed_on.empty() ? signal : passed_on;
  } catch (const base::Error&) {
    return signal;
  }
}

CallsWatched::CallsWatched(run::Activity& activity, const comm::Group& group) : activity_(activity) {
  const auto* teller = dynamic_cast<const comm::TellsCalls*>(&group);
  if (!teller) return;
  activity.watch_calls([teller] {
    const comm::CallState calls = teller->calls();
    return run::Calls{calls.waiting, calls.started, calls.answered, calls.failed, calls.whole};
  });
}

}  // namespace lockstep::ranks
