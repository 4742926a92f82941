// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lockstep/spec/job.h"
#include "lockstep/task/radar/frame_strip.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

// Of the network beside persistence (the last frame stays as it is) and, where the job asks for it, optical flow (the
// last frame goes on as it went), for each lead time. Takes the output "forecast" [rows, outputs x H x W].
std::unique_ptr<Score> make_nowcast_score(const spec::Job& job, int64_t worst);

// Pixels as a network gives them, as codes; not finite or below 0: no echo.
Frames codes_of_pixels(std::span<const float> pixels, int64_t height, int64_t width);
// The forecasts of persistence and of optical flow from the frames of a sample, [outputs, H, W] pixels each.
std::vector<float> persistence(std::span<const float> frames, const spec::Job& job);
std::vector<float> optical_flow(std::span<const float> frames, const spec::Job& job);

}  // namespace lockstep::task
