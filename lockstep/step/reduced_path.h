// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/step/batch_statistics.h"
#include "lockstep/step/gradient_path.h"
#include "lockstep/step/reducer.h"
#include "lockstep/step/step_graph.h"

namespace lockstep::step {

// Plain data parallel: a rank accumulates its micro-batches, and the last backward of a step sums over the ranks while
// it runs. The fastest way; its last bits depend on the number of ranks.
class ReducedPath final : public GradientPath {
 public:
  ReducedPath(const model::Network& network, const std::vector<model::Named>& parameters, comm::Group& group,
              const StepOptions& options, const DeviceUpdate* update = nullptr);

  BatchSums run(const Samples& samples, double scale, bool want_stop) override;
  double norm(const std::vector<at::Tensor>& gradients) const override;
  void take_statistics(const Samples& samples) override;
  void drop_statistics() override;
  bool captured() const override { return graph_ && graph_->captured(); }

 private:
  BatchSums run_alone(const Samples& samples, double scale, bool want_stop);
  int64_t num_passes(int64_t rows) const;
  PassSums accumulate(const Samples& samples, double scale);
  at::Tensor report(const PassSums& sums) const;  // all that the host must know of a step
  void pass_nothing();

  comm::Group& group_;
  const StepOptions& options_;
  std::vector<at::Tensor> parameters_;  // leaves: those that get the gradients
  Pass pass_;
  Reducer reducer_;
  BatchStatistics statistics_;
  const DeviceUpdate* update_;
  at::Tensor scale_;                  // of the loss, on the device: a captured step reads it there; undefined: none
  double scale_value_ = 0;            // what it says
  bool finite_ = false;               // the statistics after the last run, as far as is known
  std::unique_ptr<StepGraph> graph_;  // null: every operator is launched by itself
};

}  // namespace lockstep::step
