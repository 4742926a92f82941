// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/spec/job.h"

namespace lockstep::run {

// How many threads this process may compute with: as the job says, else its share of the node's cores.
int64_t compute_threads(const spec::Training& training);
// Likewise on a node with so many.
int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks);

}  // namespace lockstep::run
