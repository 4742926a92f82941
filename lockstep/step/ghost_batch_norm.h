// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/model/batch_norm.h"

namespace lockstep::step {

// Ghost batch norm (Hoffer, Hubara and Soudry, 2017): every `slice` rows are normalised by themselves, whatever the
// batch, the micro-batch and the ranks; rows that are left make a smaller slice. The running statistics take one step
// towards the mean over the slices, weighted by their rows: so ranks whose rows are whole slices end with those of one
// rank.
at::Tensor ghost_batch_norm(const model::BatchNormCall& call, int64_t slice);

}  // namespace lockstep::step
