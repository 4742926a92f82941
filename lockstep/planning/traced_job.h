// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/spec/job.h"

namespace lockstep::planning {

// The job as far as it decides which operators its step calls, whatever the batch: what it reads and where it writes,
// its length, rates and seeds have their defaults, and so has a factor of which only counts whether it is 0. Precision,
// micro-batch, recomputation and ZeRO (the levers) are left out too. Two jobs whose traced jobs are equal have equal
// recordings with equal levers on equal ranks; a key that is new in the job counts until this function knows better.
spec::Job traced_job(const spec::Job& job);

}  // namespace lockstep::planning
