// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lockstep/comm/group.h"
#include "lockstep/loader/loader.h"
#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/metrics.h"

namespace lockstep::step {

struct EvaluateOptions {
  int64_t classes = 0;
  int64_t worst = 24;
  spec::Precision precision = spec::Precision::fp32;
  at::Device device = at::kCPU;
  std::function<void(int64_t samples)> seen = {};  // told after each batch: samples of this rank so far
};

// Runs the network in evaluation mode over the rest of the loader's batches, each sample once over all ranks, and
// returns the metrics of all of them on every rank. Rows without a target are left out. Sums are of integers: their
// order does not matter.
task::Metrics evaluate(const model::Network& network, loader::Loader& loader, comm::Group& group,
                       const EvaluateOptions& options);

// One batch of that: its logits, in main memory. REQUIRES: no gradients, inside a PassPrecision. `plan` traces it too.
at::Tensor evaluate_pass(const model::Network& network, const at::Tensor& values, spec::Precision precision);

// The sum of every rank's metrics, on every rank.
task::Metrics over_ranks(const task::Metrics& mine, comm::Group& group);
// Every rank's, in rank order, on every rank.
std::vector<loader::BadSample> over_ranks(const std::vector<loader::BadSample>& mine, comm::Group& group);

}  // namespace lockstep::step
