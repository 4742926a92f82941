// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "lockstep/step/batch_statistics.h"
#include "lockstep/step/gradient_path.h"
#include "lockstep/step/lane_threads.h"
#include "lockstep/step/virtual_exchange.h"
#include "lockstep/step/virtual_tree.h"

namespace lockstep::step {

// Virtual ranks (docs/same-bits.md): every batch is cut into training.virtual_ranks slices; each is one pass with its
// own random numbers, its own batch-norm statistics and training.threads_per_slice threads, whatever rank does it. Sums
// (gradients, statistics, losses) follow one fixed binary tree over the slices, so their bits do not depend on the
// number of ranks. On the CPU a rank with threads to spare runs several slices at once, each on a twin of the network.
class VirtualPath final : public GradientPath {
 public:
  // User error for more ranks than slices. Uses as many threads as libtorch is set to when it is made.
  VirtualPath(const model::Network& network, const std::vector<model::Named>& parameters, comm::Group& group,
              const StepOptions& options);
  ~VirtualPath() override;

  BatchSums run(const Samples& samples, double scale, bool want_stop) override;
  double norm(const std::vector<at::Tensor>& gradients) const override;
  void take_statistics(const Samples& samples) override;
  void drop_statistics() override;

  int64_t lanes() const { return threads_.lanes(); }  // slices at once

 private:
  struct Lane;          // what one thread computes with
  struct SliceResult {  // of one slice
    std::optional<Tensors> sums;
    PassSums rows;
  };
  SliceResult run_slice(const Lane& lane, const Samples& part, double divisor, int64_t slice) const;
  BatchSums sum_rows(const std::vector<PassSums>& mine, const Slices& slices, int64_t first, bool want_stop);

  comm::Group& group_;
  const StepOptions& options_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the first with the step's own network
  LaneThreads threads_;
  at::Tensor kept_, merged_;  // statistics before the step and of the whole batch; none without batch norms
};

}  // namespace lockstep::step
