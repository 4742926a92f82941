// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/evaluation.h"

#include <algorithm>

#include "lockstep/run/order.h"

namespace lockstep::run {

EvaluationShare evaluation_share(int64_t samples, int64_t batch, int64_t rank, int64_t ranks) {
  const Range mine = rank_range({0, num_steps(samples, batch)}, rank, ranks);
  return {{.seed = kDefaultSeed, .epoch = 0, .consumed = mine.begin * batch}, mine.size()};
}

int64_t evaluation_batch(const spec::Job& job) {
  return job.evaluation.batch > 0 ? job.evaluation.batch : std::min<int64_t>(32, job.training.global_batch);
}

int64_t evaluation_rows(const spec::Job& job, int64_t ranks, bool on_gpu) {
  if (!on_gpu || job.evaluation.batch > 0) return evaluation_batch(job);
  const int64_t share = std::max<int64_t>(1, job.training.global_batch / ranks);
  return job.training.micro_batch > 0 ? std::min(job.training.micro_batch, share) : share;
}

int64_t busiest_rows(int64_t samples, int64_t batch, int64_t ranks) {
  const int64_t batches = num_steps(samples, batch);
  const int64_t most = (batches + ranks - 1) / ranks * batch;
  // Where one rank alone has one more than the others it is the last one, and so is the smaller batch.
  const int64_t missing = batches % ranks == 1 ? batches * batch - samples : 0;
  return std::min(samples, most - missing);
}

}  // namespace lockstep::run
