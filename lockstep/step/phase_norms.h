// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

// What these ranks cannot do with the job's batch (spec::check_batch_on_ranks), of batch norms that would see one value
// a channel, in every phase (check_slices, check_shares): a user error with its fix. `network` is the job's.
void check_norms_of_phases(const spec::Job& job, const model::Network& network, at::Device device, int64_t num_samples,
                           int64_t ranks);

}  // namespace lockstep::step
