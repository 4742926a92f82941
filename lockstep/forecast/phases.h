// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/forecast/time.h"

namespace lockstep::forecast {

// The step of one phase, and how much of the run it is.
struct WeightedTime {
  TimeForecast time;
  double weight = 1;
};

// The mean over the steps of all of them: so many steps times it are the seconds of the run. One is itself.
// REQUIRES: at least one.
TimeForecast mean_time(const std::vector<WeightedTime>& phases);

}  // namespace lockstep::forecast
