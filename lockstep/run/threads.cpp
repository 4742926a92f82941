// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/threads.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/load.h"

namespace lockstep::run {

int64_t compute_threads(const spec::Training& training) {
  return training.threads > 0 ? training.threads : site::cores_per_rank();
}

int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks) {
  return training.threads > 0 ? training.threads : site::cores_per_rank(cores, local_ranks);
}

int64_t threads_beside(int64_t cores, double busy, int64_t local_ranks) {
  const double left = std::max(0.0, static_cast<double>(cores) - busy) / static_cast<double>(local_ranks);
  return std::clamp<int64_t>(std::llround(left), 1, site::cores_per_rank(cores, local_ranks));
}

ThreadChoice choose_threads(const spec::Training& training) {
  if (training.threads > 0) return {training.threads};
  return choose_threads(training, site::usable_cores(), site::busy_cores(), site::read_launch().local_size);
}

ThreadChoice choose_threads(const spec::Training& training, int64_t cores, double busy, int64_t local_ranks) {
  const int64_t share = compute_threads(training, cores, local_ranks);
  if (training.threads > 0) return {share};
  const int64_t threads = threads_beside(cores, busy, local_ranks);
  if (threads == share) return {share};
  return {threads,
          base::text(base::fixed(busy, 1), " of ", cores, cores == 1 ? " core is" : " cores are",
                     " busy with other processes: computing with ", threads, threads == 1 ? " thread" : " threads",
                     local_ranks > 1 ? " a rank" : "", ", not ", share, " (training.threads decides otherwise)")};
}

}  // namespace lockstep::run
