// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/parts_path.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::step {

PartsPath::PartsPath(const model::Network& network, comm::Group& group, const StepOptions& options,
                     Partitioning& partitioning)
    : group_(group),
      options_(options),
      partitioning_(partitioning),
      pass_(network, options, partitioning.level() == 3 ? &partitioning : nullptr),
      statistics_(network, options.norms_from(network)) {}

BatchSums PartsPath::run(const Samples& samples, double scale, bool want_stop) {
  seed_dropout(options_, group_.rank(), samples.step);
  statistics_.keep();
  return over_ranks(accumulate(samples, scale), pass_.num_totals(), want_stop, group_);
}

PassSums PartsPath::accumulate(const Samples& samples, double scale) {
  PassSums sums;
  const int64_t rows = samples.rows();
  const int64_t most = std::max<int64_t>(1, (samples.global_size + group_.size() - 1) / group_.size());
  base::ensure(rows <= most, "no rank has more than its share of the batch");
  const int64_t micro = options_.training.micro_batch > 0 ? options_.training.micro_batch : most;
  for (int64_t start = 0; start < most; start += micro) {
    if (start >= rows) {
      partitioning_.pass_nothing();
      continue;
    }
    partitioning_.begin_pass();
    sums += pass_.run(samples.slice(start, std::min(micro, rows - start)),
                      static_cast<double>(samples.global_size) / scale);
    partitioning_.end_pass();
  }
  return sums;
}

double PartsPath::norm(const std::vector<at::Tensor>& gradients) const {
  return partitioning_.norm(gradients);
}

void PartsPath::take_statistics(const Samples& samples) {
  statistics_.merge(group_, samples.rows(), samples.global_size);
}

void PartsPath::drop_statistics() {
  statistics_.restore();
}

}  // namespace lockstep::step
