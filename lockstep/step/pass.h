// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/objective/objective.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/ema.h"
#include "lockstep/step/recompute.h"
#include "lockstep/step/samples.h"
#include "lockstep/step/weight_copies.h"

namespace lockstep::step {

struct StepOptions {
  spec::Training training;
  at::Device device = at::kCPU;
  size_t train_from = 0;     // blocks before it are frozen: no gradient, batch norms as in evaluation
  bool freeze_norm = false;  // trained blocks run as in evaluation too: small sets must not bend the statistics
  Ema* ema = nullptr;        // updated after each step
  bool graph = true;         // fused kernels on a GPU become a CUDA graph (step_graph.h)
  std::optional<bool> on_device = {};    // whether the update needs no host (device_update.h); nothing: where it can
  const WeightCopies* copies = nullptr;  // 16-bit weights that last (weight_copies.h); the Step makes them
  std::shared_ptr<const objective::Objective> objective = nullptr;  // null: of the task that a job has by default

  // The first block whose batch norms take part.
  size_t norms_from(const model::Network& network) const { return freeze_norm ? network.blocks().size() : train_from; }
};

// The objective of a step with these options.
std::shared_ptr<const objective::Objective> objective_of(const StepOptions& options);

struct PassSums {        // over rows
  at::Tensor totals;     // double, on the device: the loss, then the objective's figures; undefined: no rows yet
  int64_t samples = 0;   // rows that take part
  at::Tensor kept = {};  // the batch norms' statistics before, where a replayed step keeps them

  PassSums& operator+=(const PassSums& other);
};

// One forward and backward over some rows: the smallest part of a step, whatever the ranks. Waits for no device. Random
// choices come from where the caller has left libtorch's generator.
class Pass {
 public:
  // `source`: has the weights of blocks that the network does not have (training.zero 3). All must outlive it.
  Pass(const model::Network& network, const StepOptions& options, WeightSource* source = nullptr);

  // Adds the gradient of sum(loss) / divisor to .grad() of each trained parameter; `scale`, on the device, multiplies
  // it.
  PassSums run(const Samples& part, double divisor, const at::Tensor& scale = {}) const;
  int64_t num_totals() const { return 1 + static_cast<int64_t>(objective_->figures().size()); }

 private:
  model::NamedTensors forward(const Samples& part, const model::NamedTensors& fields) const;

  const model::Network& network_;
  const StepOptions& options_;
  WeightSource* source_;
  std::shared_ptr<const objective::Objective> objective_;
  std::vector<bool> recomputed_;  // by block
};

}  // namespace lockstep::step
