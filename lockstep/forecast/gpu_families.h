// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/spec/choice.h"

namespace lockstep::forecast {

// What most operations of a step are done in.
LOCKSTEP_CHOICE(Arithmetic, fp32, tf32, half)
Arithmetic arithmetic_of(const Recording& recording);  // fp32 when it computes nothing

// low and high: quantiles of actual / forecast, over cases that the fit had not seen.
struct Spread {
  double low = 1;
  double high = 1;

  bool operator==(const Spread&) const = default;
};

// GPUs that reach about the same share of their rates. A GPU that was not calibrated takes the calibrated one's share;
// older and smaller ones reach more of theirs, so a step takes `factor` of the seconds that come out.
struct GpuFamily {
  std::string name;
  std::vector<std::string> capabilities;      // compute capabilities of its members
  std::string like = {};                      // the family that stands in where rows are few; empty: all rows
  std::array<double, 3> factors = {1, 1, 1};  // by Arithmetic
  int64_t rows = 0;                           // published steps behind the factors,
  int64_t origins = 0;                        // of so many reports and machines
  Spread spread = {};
  bool pooled = false;  // fewer than three origins: the interval is that of all families; without rows, a wider one

  bool unseen() const { return rows == 0 || capabilities.empty(); }

  double factor(Arithmetic arithmetic) const { return factors[static_cast<size_t>(arithmetic)]; }
  bool operator==(const GpuFamily&) const = default;
};

// gpu_families.json, made by `bench forecast --published FILE --fit`. Document: docs/formats/calibration.md.
struct GpuFamilies {
  std::vector<GpuFamily> families;
  GpuFamily others;        // every GPU of no family
  double python_host = 1;  // what PyTorch's Python pays on the launching thread, in what our step pays

  const GpuFamily& of(std::string_view capability) const;
  bool operator==(const GpuFamilies&) const = default;
};
GpuFamilies parse_families(const base::Json& document);  // user error with the place
std::string to_text(const GpuFamilies& families);
GpuFamilies load_families();  // the embedded ones

// A published step, foretold with every factor 1.
struct CarriedStep {
  std::string family;
  Arithmetic arithmetic = Arithmetic::fp32;
  std::string origin;    // rows of one report share a machine: they are left out together
  std::string era = {};  // age of the framework
  bool python = false;   // PyTorch's Python launched it
  double host = 0;       // seconds of the launching thread
  double device = 0;     // seconds of the step when the host is ahead
  double seconds = 0;    // as published
};

// Seconds of the step with these factors.
double carried_seconds(const CarriedStep& step, const GpuFamilies& families);

// Factors and host from the steps; name, capabilities and `like` stay. A factor is a robust mean over origins, with its
// family's as one of them, and in that its relative's.
GpuFamilies fit_factors(const std::vector<CarriedStep>& steps, GpuFamilies families);

// And the intervals: 80 % of what published / foretold was for origins that the factors had not seen. A family without
// rows, and GPUs of none, have that of steps whose family the factors had not seen either, if it is wider.
GpuFamilies fit_families(const std::vector<CarriedStep>& steps, const GpuFamilies& families);

// What steps of this age of frameworks and arithmetic took of the seconds foretold with every factor 1, whatever the
// GPU: the rule that families replaced, kept to be compared with. 1 where there is no such step.
double era_factor(const std::vector<CarriedStep>& steps, const std::string& era, Arithmetic arithmetic);

std::vector<CarriedStep> without_origin(const std::vector<CarriedStep>& steps, const std::string& origin);

}  // namespace lockstep::forecast
