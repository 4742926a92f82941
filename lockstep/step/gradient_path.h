// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/group.h"
#include "lockstep/step/device_update.h"
#include "lockstep/step/partitioning.h"
#include "lockstep/step/pass.h"

namespace lockstep::step {

struct BatchSums {             // over the whole batch, the same on every rank
  std::vector<double> totals;  // over rows: the loss, then the objective's figures
  int64_t samples = 0;         // rows that take part
  bool stop = false;           // some rank wants to stop after this step
  double exposed_seconds = 0;  // of this rank's communication that computing did not hide, beyond the blocking calls'
  std::optional<double> norm = std::nullopt;  // of the gradients, where it came with the sums
  bool updated = false;  // the weights too, unless loss or gradients are not finite; the host is to follow
  bool finite = false;   // with `updated`: the batch norms' statistics
};

// What dropout draws in a step belongs to (seed, step, rank), resumed or not: sets libtorch's generator to it.
void seed_dropout(const StepOptions& options, int64_t rank, int64_t step);
// This rank's sums with those of all others, `num_totals` of them; every rank calls it. Reads them: until here
// nothing in a step waits for the device.
BatchSums over_ranks(const PassSums& mine, int64_t num_totals, bool want_stop, comm::Group& group);

// The way from a rank's samples to the gradient of the whole batch: how it is cut into passes, who adds what to what,
// and in which order. Everything in a step that depends on ranks lies behind this; clipping, optimizer and moving
// average come after it and see the same on every rank.
class GradientPath {
 public:
  virtual ~GradientPath() = default;

  // Every rank calls it for the same step. Afterwards .grad() of each trained parameter (of this rank's partitions,
  // where the partitioning sums gradients) holds `scale` times the gradient of the mean over the batch's rows.
  // REQUIRES: no trained parameter has a gradient.
  virtual BatchSums run(const Samples& samples, double scale, bool want_stop) = 0;

  // Of gradients in the order of the parameters, or of partitions.
  virtual double norm(const std::vector<at::Tensor>& gradients) const = 0;

  // After run(), one of the two: the running statistics of the batch norms become those of the whole batch, the same
  // on every rank; or again what they were, for a step that is not taken.
  virtual void take_statistics(const Samples& samples) = 0;
  virtual void drop_statistics() = 0;

  // Whether batches of one shape are replayed as a CUDA graph from now on.
  virtual bool captured() const { return false; }
};

// The path that the job asks for; `parameters` are those that are trained; no `partitioning`: training.zero is 0, or
// there is one rank; no `update`: the host takes the step. All must outlive it.
std::unique_ptr<GradientPath> make_gradient_path(const model::Network& network,
                                                 const std::vector<model::Named>& parameters, comm::Group& group,
                                                 const StepOptions& options, Partitioning* partitioning = nullptr,
                                                 const DeviceUpdate* update = nullptr);

}  // namespace lockstep::step
