// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {

// Rules that tie fields together. Each complaint stands at the field of `document` that should change.
void check_job_rules(const Job& job, const base::Json& document, Problems& problems);

}  // namespace lockstep::spec
