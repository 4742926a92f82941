// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/threads.h"

#include <algorithm>

#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"

namespace lockstep::run {

int64_t compute_threads(const spec::Training& training) {
  return compute_threads(training, site::usable_cores(), site::read_launch().local_size);
}

int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks) {
  if (training.threads > 0) return training.threads;
  return std::max<int64_t>(1, cores / local_ranks);
}

}  // namespace lockstep::run
