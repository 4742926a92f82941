// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/measure/sweep.h"
#include "lockstep/step/gpu.h"

namespace lockstep::measure {

struct CalibrateOptions {
  at::Device device = at::kCPU;
  double seconds = 60;  // no further case after this time
  uint64_t seed = 1;
  std::function<void(std::string_view)> say = [](std::string_view) {};
  std::function<void(const base::Json& rows)> save = [](const base::Json&) {};  // now and then, and at the end
};

struct CalibrateResult {
  base::Json rows;  // what operator_row gives, and "layout"; then transfers: {"what": "transfer", "direction", ...}
  int64_t cases = 0;
  int64_t left_out = 0;  // the time was over
  int64_t failed = 0;    // each with its reason said
};

// Times operators that belong to no network over the sizes of a sweep, each on tensors of its own.
CalibrateResult calibrate(const CalibrateOptions& options);

}  // namespace lockstep::measure
