// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/json.h"
#include "lockstep/watching/run_watch.h"

namespace lockstep::watching {

// How much of a run's curves a page has already.
struct Cursor {
  int64_t voids = -1;  // RunLog::num_voids when it was told
  int64_t steps = 0;   // records
  int64_t evaluations = 0;
};

// What a page that follows a run needs: how it stands, and of its curves only what is new since `since`. "reset": the
// page drops the curves that it has, for some of their steps were undone, and takes these. At most 600 points, however
// long the run.
base::Json live_json(const RunWatch& watch, const Cursor& since, double now);

}  // namespace lockstep::watching
