// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/advice/paper.h"
#include "lockstep/base/arguments.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

// What every piece of advice is made from.
struct AdviceRequest {
  const base::Arguments& arguments;  // of `lockstep plan`
  const catalogue::Catalogue& catalogue;
  const forecast::Calibration& calibration;
  planning::Tracer* tracer = nullptr;
};

std::vector<std::string> advice_names();

// `lockstep plan --advise WHAT`, by name; user error with the nearest names.
Advice advise(const std::string& what, const AdviceRequest& request);

}  // namespace lockstep::advice
