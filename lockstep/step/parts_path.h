// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/step/batch_statistics.h"
#include "lockstep/step/gradient_path.h"

namespace lockstep::step {

// Data parallel where each rank keeps its part of the gradients only (training.zero 2 and 3): they are summed block by
// block while each backward runs, so every rank takes as many passes as the one with most rows, with nothing to compute
// in some of them.
class PartsPath final : public GradientPath {
 public:
  PartsPath(const model::Network& network, comm::Group& group, const StepOptions& options, Partitioning& partitioning);

  BatchSums run(const Samples& samples, double scale, bool want_stop) override;
  double norm(const std::vector<at::Tensor>& gradients) const override;
  void take_statistics(const Samples& samples) override;
  void drop_statistics() override;

 private:
  PassSums accumulate(const Samples& samples, double scale);

  comm::Group& group_;
  const StepOptions& options_;
  Partitioning& partitioning_;
  Pass pass_;
  BatchStatistics statistics_;
};

}  // namespace lockstep::step
