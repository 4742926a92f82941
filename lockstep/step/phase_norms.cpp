// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/phase_norms.h"

#include "lockstep/step/virtual_check.h"

namespace lockstep::step {

void check_norms_of_phases(const spec::Job& job, const model::Network& network, at::Device device, int64_t num_samples,
                           int64_t ranks) {
  std::vector<spec::Phase> phases = job.training.phases;
  if (phases.empty()) phases.emplace_back();
  for (const spec::Phase& phase : phases) {
    StepOptions options;
    options.training = job.training;
    options.device = device;
    options.train_from = phase.train_from.empty() ? 0 : network.index_of(phase.train_from);
    options.freeze_norm = phase.freeze_norm;
    check_slices(network, options, num_samples, job.data.image_size);
    check_shares(network, options, num_samples, job.data.image_size, ranks);
  }
}

}  // namespace lockstep::step
