// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"
#include "lockstep/spec/job.h"

namespace lockstep::verbs {

// How many threads this process may compute with: as the job says, else its share of the node's cores.
int64_t compute_threads(const spec::Training& training);
// Likewise on a node with so many.
int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks);

// The smallest of what the ranks name, on every rank. A sum over many numbers depends on the threads that make it:
// ranks with different ones would clip by different norms, and their weights would part.
int64_t agree_on_threads(int64_t mine, comm::Group& group);

}  // namespace lockstep::verbs
