// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/planning/plan.h"

namespace lockstep::planning {

// The plan document (docs/formats/plan.md): everything that is known, for programs and for the pages.
base::Json to_json(const Plan& plan);

}  // namespace lockstep::planning
