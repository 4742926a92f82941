// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/threads.h"

#include <algorithm>

#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"

namespace lockstep::run {

int64_t compute_threads(const spec::Training& training) {
  return training.threads > 0 ? training.threads : site::cores_per_rank();
}

int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks) {
  return training.threads > 0 ? training.threads : site::cores_per_rank(cores, local_ranks);
}

}  // namespace lockstep::run
