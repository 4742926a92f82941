// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/advice/advise.h"
#include "lockstep/advice/measured_table.h"

namespace lockstep::advice {

// Where the table of rates names a job: traces its step for every row (so many GPUs, each with the row's batch) and
// puts what the plan says, rate and hours, into the row's figures (of a table whose "batch" is to be read: gpu_batch
// samples on each GPU, and the rate alone); where the row does not fit as it is written, of the
// fastest change that fits. The gradient of the traced network is what the collective model is asked about, unless the
// table states one. `folder`: where the table lies, which names of jobs are relative to. User error: a job without
// `gpu` or batches.
void plan_rows(MeasuredTable& table, const base::Path& folder, const AdviceRequest& request);

}  // namespace lockstep::advice
