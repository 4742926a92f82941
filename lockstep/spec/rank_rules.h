// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::spec {

// User error with its fix when this number of ranks cannot share the job's batch. `train`, `plan` and `submit` make the
// same check.
void check_batch_on_ranks(const Training& training, int64_t ranks);

// The part of it that is about training.virtual_ranks.
void check_slices_on_ranks(const Training& training, int64_t ranks);

// The sizes of a rank's slices that are smaller than ghost_batch, largest first: what is left of each micro-batch.
// REQUIRES: ghost_batch above 0.
std::vector<int64_t> smaller_slices(const Training& training, int64_t ranks);

}  // namespace lockstep::spec
