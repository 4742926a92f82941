// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/comm/group.h"
#include "lockstep/model/network.h"
#include "lockstep/step/gradient_path.h"
#include "lockstep/step/loss_scale.h"
#include "lockstep/step/optimizer.h"
#include "lockstep/step/pass.h"
#include "lockstep/step/reducer.h"
#include "lockstep/step/samples.h"

namespace lockstep::step {

struct StepResult {
  double loss = 0;       // mean over the batch, all ranks
  int64_t correct = 0;   // rows, all ranks
  int64_t samples = 0;   // rows with a target, all ranks
  bool finite = true;    // false: loss or gradient was not, and nothing was changed
  bool skipped = false;  // the loss scale of amp was too large: nothing was changed, the next step has half of it
  bool stop = false;     // some rank wants to stop after this step
  double gradient_norm = 0;
  double compute_seconds = 0;
  double communicate_seconds = 0;  // not hidden behind computing
};

// THE step: forward, loss, backward with summed gradients (gradient_path.h), clipping, optimizer, moving average.
// `train` runs it, `bench` times it. One Step lives as long as its set of trained blocks. The gradient is that of the
// mean over the samples of the whole batch, whatever the ranks and micro-batches; what batch norms see is
// training.batch_norm's. After a step every rank holds the same weights, statistics and optimizer state.
class Step {
 public:
  Step(model::Network& network, comm::Group& group, StepOptions options);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Every rank calls it for the same step; `want_stop` of any rank comes out as `stop` on all.
  StepResult run(const Samples& samples, double lr, bool want_stop = false);

  Optimizer& optimizer() { return optimizer_; }
  // What a resume needs: the optimizer's state and, where there is one, the loss scale. The tensors are the live ones.
  std::vector<model::Named> state() const;
  // User error naming the first tensor that is missing or has another shape.
  void load_state(const std::vector<model::Named>& state);

 private:
  void finish(StepResult& result, const Samples& samples, double lr);

  comm::Group& group_;
  StepOptions options_;
  Optimizer optimizer_;
  std::unique_ptr<GradientPath> path_;
  LossScale scale_;
};

}  // namespace lockstep::step
