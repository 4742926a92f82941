// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/forecast/calibration.h"

namespace lockstep::forecast {

// Rows of timed operators, as `bench calibrate` and `bench cells --operators` write them: an array of {name, kind,
// type, flops, bytes, shape, seconds} with, where known, launches, layout and model; other keys are left alone. User
// error with the place for a wrong value.
std::vector<Sample> parse_rows(const base::Json& rows);

// Each operator of each layout once: the median of its times, the union of its models; in a fixed order. What moves
// nothing and computes nothing (views) is left out.
std::vector<Sample> merge_samples(std::vector<Sample> samples);

// The quantiles `tail` and 1 - `tail` of actual / forecast, widened to hold 1.
Spread spread_of(std::vector<double> ratios, double tail = 0.1);

// actual / forecast of every sample, each foretold by all others.
std::vector<double> leave_one_out(const DeviceCalibration& device);

}  // namespace lockstep::forecast
