// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/step/pass.h"

namespace lockstep::step {

// True when some pass of a batch may have one sample only: a slice of virtual ranks, or a micro-batch. Then batch norms
// must be checked.
bool has_passes_of_one(const spec::Training& training, int64_t num_samples, int64_t ranks);

// Before a run with virtual ranks over `num_samples` images: user error with the fix when some batch, mostly the last
// of an epoch, leaves a slice so small that a trained batch norm would see one value a channel, which has no variance.
void check_slices(const model::Network& network, const StepOptions& options, int64_t num_samples,
                  const spec::ImageSize& image_size);

// The same without virtual ranks: each of `ranks` takes its share of a batch, in passes of training.micro_batch rows.
void check_shares(const model::Network& network, const StepOptions& options, int64_t num_samples,
                  const spec::ImageSize& image_size, int64_t ranks);

}  // namespace lockstep::step
