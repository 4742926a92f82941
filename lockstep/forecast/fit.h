// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/forecast/calibration.h"

namespace lockstep::forecast {

// Rows of timed operators, as `bench calibrate` and `bench cells --operators` write them: an array of {name, kind,
// type, flops, bytes, shape, seconds} with, where known, launches, layout and model; other keys are left alone. Rows
// without seconds, and those of views, are passed over. User
// error with the place for a wrong value.
std::vector<Sample> parse_rows(const base::Json& rows);

// Seconds that the calling thread spends in one call, by class: the mean of rows that state host_seconds.
std::map<OperatorClass, double> host_by_class(const base::Json& rows);

// A step whose wall time is the host's.
struct HostCase {
  const Recording* recording = nullptr;
  double seconds = 0;
};
// Calls were timed while they were watched; one factor, the same for all, brings the median of the cases to what they
// take unwatched, with autograd and the step's own code between them.
HostCosts fit_host(const std::map<OperatorClass, double>& calls, const std::vector<HostCase>& cases);

struct PowerCase {
  double watts = 0, idle = 0, cap = 0;
  double busy = 0;           // share of the time that the device computes
  double compute_bound = 0;  // share of that
};
// Least squares; each share in [0, 1]. `otherwise` when there are fewer than two cases.
PowerShares fit_power(const std::vector<PowerCase>& cases, const PowerShares& otherwise);

// Each operator of each layout once: the median of its times, the union of its models; in a fixed order. What moves
// nothing and computes nothing (views) is left out.
std::vector<Sample> merge_samples(const std::vector<Sample>& samples);

// Without the samples that the others foretell within `tolerance`: what belongs to no network stays first, so that
// leaving a network out leaves little out.
std::vector<Sample> thin_samples(const std::vector<Sample>& samples, const Rates& rates, double tolerance = 0.1);

// The quantiles `tail` and 1 - `tail` of actual / forecast, widened to hold 1.
Spread estimate_spread(std::vector<double> ratios, double tail = 0.1);

// actual / forecast of samples (at most 60 of a class, evenly taken), each foretold by all others of its class.
std::vector<double> leave_one_out(const DeviceCalibration& device);

// A calibration of this device from rows of timed operators alone: samples, floor, intervals. Host, gap and power are
// not in them. User error when no row is timed.
DeviceCalibration fit_operators(const base::Json& rows, const Rates& rates);

}  // namespace lockstep::forecast
