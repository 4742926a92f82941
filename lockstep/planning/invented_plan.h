// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/invented_step.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// A plan of the invented step, 32 samples at once, 1,000 steps, on the named machine options: nothing is traced.
inline Plan invented_plan(std::vector<std::string> on, std::vector<int64_t> gpus = {1}) {
  const auto catalogue = catalogue::load_embedded();
  PlanRequest request;
  request.recording = forecast::invented_step({.precision = "fp32", .micro_batch = 32});
  request.job.name = "invented";
  request.job.training.steps = 1000;
  request.machine_options =
      find_machine_options({.on = std::move(on), .gpus = std::move(gpus), .here = [] { return Here{}; }}, catalogue);
  return make_plan(request, catalogue, forecast::load_calibration());
}

}  // namespace lockstep::planning
