// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/spec/job.h"

namespace lockstep::run {

// How many threads this process may compute with: as the job says, else its share of the node's cores.
int64_t compute_threads(const spec::Training& training);
// Likewise on a node with so many.
int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks);

// The share of one rank in `cores` of which others keep `busy` busy: a thread that waits for a core keeps all other
// threads of its team waiting, so a core that is taken for more than half of the time does not count. At least 1.
int64_t threads_beside(int64_t cores, double busy, int64_t local_ranks);

// How many threads, and why, where it is fewer than the share of the cores; `why` is empty else.
struct ThreadChoice {
  int64_t threads = 1;
  std::string why = {};
};
// For a process that is about to compute: as the job says, else by what others leave (site::busy_cores, which takes a
// moment).
ThreadChoice choose_threads(const spec::Training& training);
ThreadChoice choose_threads(const spec::Training& training, int64_t cores, double busy, int64_t local_ranks);

}  // namespace lockstep::run
