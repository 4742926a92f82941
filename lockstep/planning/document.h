// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/planning/plan.h"
#include "lockstep/spec/plan.h"

namespace lockstep::planning {

// The plan document: everything that is known, for programs and for the pages.
spec::Plan document_of(const Plan& plan);
base::Json to_json(const Plan& plan);

}  // namespace lockstep::planning
