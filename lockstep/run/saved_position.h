// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/run/timetable.h"

namespace lockstep::run {

// Whether a checkpoint stands where a run of this timetable can stand: checksums say that its state.json is whole, not
// that it is true. User error when it is beyond the end of the run, machine error when its step, epoch, position in the
// data and what rewinds left out contradict each other. `folder` is the checkpoint's.
void check_saved_position(const base::Json& state, const Timetable& timetable, const std::string& folder);

}  // namespace lockstep::run
