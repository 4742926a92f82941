// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::ranks {

// Which supervised start of the ranks this process belongs to, and as which rank.
struct WorkerSlot {
  std::string world;
  int64_t rank = 0;
  base::Path heartbeat;  // the file of this rank's heartbeats
  base::Path latest;     // names the start that counts now; a rank of another one is ended. Empty: not asked
  base::Path stop = {};  // says why the ranks shall save and stop, as soon as they shall. Empty: not asked
};

// Splits this process in two. The rank goes on (nothing is returned). Its watchdog stays behind, passes signals on, and
// writes into the heartbeat how the rank ended or that it was stopped: a rank killed with SIGKILL cannot. Where no
// signal comes through (an mpirun that passes none on, a node beyond ssh) it reads from `stop` that the rank shall
// stop, and sends it SIGUSR1, which the rank ignores while it has no handler for it. The watchdog returns the exit code
// for the launcher, 128 + the signal for a rank that was killed. Neither outlives the other or the launcher, and both
// end within a second after other ranks were started instead. REQUIRES: no other thread yet.
std::optional<int> watch_rank(const WorkerSlot& slot);

}  // namespace lockstep::ranks
