// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/recordings.h"

namespace lockstep::planning {

// A user's recording in place of a trace. It cannot be cut or changed; where several ranks are asked for and it was
// made on one, each step gets one all-reduce of all gradients before its update: the plainest form of data parallelism,
// with nothing hidden behind the backward pass.
forecast::Recording recorded_step(const forecast::Recording& recording, const forecast::TraceKey& trace_key);

}  // namespace lockstep::planning
