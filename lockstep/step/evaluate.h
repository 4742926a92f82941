// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "lockstep/comm/group.h"
#include "lockstep/loader/loader.h"
#include "lockstep/model/frozen.h"
#include "lockstep/model/network.h"
#include "lockstep/objective/objective.h"
#include "lockstep/spec/job.h"
#include "lockstep/task/task.h"

namespace lockstep::step {

struct EvaluateOptions {
  std::shared_ptr<const task::Task> task;
  std::shared_ptr<const objective::Objective> objective;
  int64_t worst = 24;  // samples that the score keeps for people to look at
  spec::Precision precision = spec::Precision::fp32;
  spec::Views views = spec::Views::center;
  at::Device device = at::kCPU;
  std::function<void(int64_t samples)> seen = {};  // told after each batch: samples of this rank so far
  // Told of each batch of this rank what the score is made from; with `features` also what the head takes of each
  // sample, as the output "features".
  std::function<void(const task::Rows&)> rows = {};
  bool features = false;
};

// Runs the network in evaluation mode over the rest of the loader's batches, each sample once over all ranks, and
// returns the score of all of them on every rank.
std::unique_ptr<task::Score> evaluate(const model::Network& network, loader::Loader& loader, comm::Group& group,
                                      const EvaluateOptions& options);

// How one batch is shown to the network.
struct PassOptions {
  spec::Precision precision = spec::Precision::fp32;
  spec::Views views = spec::Views::center;
  at::Tensor* features = nullptr;          // where to put what the head takes of the first view: [rows, width]
  model::FrozenNetwork* frozen = nullptr;  // runs in the network's place where no features are asked for
};

// One batch of that: the network's outputs, on the device, those of several views averaged by the objective. REQUIRES:
// no gradients, inside a PassPrecision. `plan` traces it too.
model::NamedTensors evaluate_pass(const model::Network& network, const model::NamedTensors& fields,
                                  const objective::Objective& objective, const PassOptions& options);

// What the objective made of them for a batch of these samples, as plain rows. `host` must outlive the result.
task::Rows plain_rows(const loader::Batch& batch, const objective::HostRows& host);

// Makes it the score of all ranks, on every rank.
void merge_over_ranks(task::Score& score, comm::Group& group);
// Every rank's, in rank order, on every rank.
std::vector<loader::BadSample> over_ranks(const std::vector<loader::BadSample>& mine, comm::Group& group);

}  // namespace lockstep::step
