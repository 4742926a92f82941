// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

// Radar frames to those that follow. A sample is a strip of frames (frame_strip.h). Fields "frames" [inputs, 1, H, W],
// pixels from 0 to 1, and "targets" [outputs, 1, H, W], -1 where nothing was measured or nobody knows yet.
std::unique_ptr<Task> make_nowcast(const spec::Job& job);

}  // namespace lockstep::task
