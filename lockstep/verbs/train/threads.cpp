// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/threads.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "lockstep/site/cores.h"

namespace lockstep::verbs {

int64_t compute_threads(const spec::Training& training) {
  return compute_threads(training, site::usable_cores(), comm::locality().size);
}

int64_t compute_threads(const spec::Training& training, int64_t cores, int64_t local_ranks) {
  if (training.threads > 0) return training.threads;
  return std::max<int64_t>(1, cores / local_ranks);
}

int64_t agree_on_threads(int64_t mine, comm::Group& group) {
  int64_t least = mine;
  for (const at::Tensor& theirs : group.all_gather(at::full({1}, mine, at::kLong))) {
    least = std::min(least, theirs.item<int64_t>());
  }
  return least;
}

}  // namespace lockstep::verbs
