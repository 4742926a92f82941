// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/image/draw.h"
#include "lockstep/image/image.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::task {

// What is shown of one forecast: the frames that were seen, those that followed (none: nobody knows yet) and those that
// were forecast.
struct ShownForecast {
  Frames seen, truth, forecast;
  double minutes = 5;  // from one frame to the next
};

// The colours of weather maps, from light rain to hail; what is dry is dark, what was not measured grey.
image::Color rain_color(uint8_t code);

// Side by side: some of the lead times, the truth above the forecast.
image::Image forecast_sheet(const ShownForecast& shown);
// An animated PNG: what was seen, then the truth beside the forecast, frame by frame.
std::string forecast_animation(const ShownForecast& shown);

}  // namespace lockstep::task
