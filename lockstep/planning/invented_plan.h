// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/invented_step.h"
#include "lockstep/planning/places.h"
#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// A plan of the invented step, 32 samples at once, 1,000 steps, on the named places: nothing is traced.
inline Plan invented_plan(std::vector<std::string> on, std::vector<int64_t> gpus = {1}) {
  const auto shelf = catalogue::load_embedded();
  PlanRequest request;
  request.recording = forecast::invented_step({.precision = "fp32", .micro_batch = 32});
  request.job.name = "invented";
  request.job.training.steps = 1000;
  request.places = places_of({.on = std::move(on), .gpus = std::move(gpus), .here = [] { return Here{}; }}, shelf);
  return make_plan(request, shelf, forecast::load_calibration());
}

}  // namespace lockstep::planning
