// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "lockstep/comm/group.h"
#include "lockstep/model/network.h"
#include "lockstep/step/cut_state.h"
#include "lockstep/step/device_update.h"
#include "lockstep/step/gradient_path.h"
#include "lockstep/step/loss_scale.h"
#include "lockstep/step/optimizer.h"
#include "lockstep/step/partitioning.h"
#include "lockstep/step/pass.h"
#include "lockstep/step/reducer.h"
#include "lockstep/step/samples.h"
#include "lockstep/step/weight_copies.h"

namespace lockstep::step {

struct StepResult {
  double loss = 0;                   // mean over the batch, all ranks
  std::vector<double> figures = {};  // the objective's: sums over the batch, all ranks
  int64_t samples = 0;               // rows that take part, all ranks
  bool finite = true;                // false: loss or gradient was not, and nothing was changed
  bool skipped = false;  // the loss scale of amp was too large: nothing was changed, the next step has half of it
  bool stop = false;     // some rank wants to stop after this step
  double gradient_norm = 0;
  double compute_seconds = 0;
  double communicate_seconds = 0;  // not hidden behind computing
};

// THE step: forward, loss, backward with summed gradients (gradient_path.h), clipping, optimizer, moving average.
// `train` runs it, `bench` times it. One Step lives as long as its set of trained blocks. The gradient is that of the
// mean over the samples of the whole batch, whatever the ranks and micro-batches; what batch norms see is
// training.batch_norm's. After a step every rank holds the same weights, statistics and optimizer state; with
// training.zero, a part of them.
class Step {
 public:
  Step(model::Network& network, comm::Group& group, StepOptions options);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Every rank calls it for the same step; `want_stop` of any rank comes out as `stop` on all.
  StepResult run(const Samples& samples, double lr, bool want_stop = false);

  Optimizer& optimizer() { return optimizer_; }

  // Puts whole weights into the network, where run() leaves none (training.zero 3): call it before anything else reads
  // or writes them, an evaluation, a checkpoint, a rewind, the end of the Step. What the network has when run() is
  // called next is what is trained. Every rank calls it; with less than 3 it does nothing.
  void assemble();
  // What a resume needs, as whole tensors by name whatever the ranks and training.zero: the optimizer's state and,
  // where there is one, the loss scale. Every rank calls it, and gets those that it `wanted` (a writer all or some, the
  // others none: the memory of one block is needed besides). The tensors are live ones, or copies in main memory.
  using Wanted = Partitioning::Wanted;
  std::vector<model::Named> state(const Wanted& wanted = [](const std::string&) { return true; }) const;
  int64_t state_bytes() const;  // of all of it
  // The same without gathering anything: what this rank has of it, and with training.zero 3 of the weights. The Step
  // outlives it. REQUIRES: partitioning().
  CutState cut_state() const;
  // From whole tensors. User error naming the first that is missing or has another shape.
  void load_state(const std::vector<model::Named>& state);

  // This rank's, of the last step: whole, or with training.zero 2 and 3 those of its partitions. Where the update needs
  // no host they are as backward left them: with the loss scale, before clipping, perhaps in 16 bit.
  std::vector<at::Tensor> gradients() const;
  const WeightCopies* copies() const { return copies_.get(); }              // null or empty: each pass casts
  const DeviceUpdate* update() const { return update_.get(); }              // null: the host takes the step
  const Partitioning* partitioning() const { return partitioning_.get(); }  // null: one rank, or training.zero 0
  bool captured() const { return path_->captured(); }                       // batches of one shape: as a CUDA graph

 private:
  void finish(StepResult& result, const Samples& samples, double lr, const BatchSums& sums);
  // Whether the step is (to be) taken: loss and gradients are finite.
  bool judge(StepResult& result);
  void update(double lr);
  double seconds_waited() const {
    return group_.seconds_waited() + (partitioning_ ? partitioning_->seconds_waited() : 0);
  }

  comm::Group& group_;
  StepOptions options_;
  std::vector<model::Named> trained_;
  std::unique_ptr<Partitioning> partitioning_;
  std::unique_ptr<WeightCopies> copies_;  // null: the host takes the step
  Optimizer optimizer_;
  std::unique_ptr<DeviceUpdate> update_;  // null: the host takes the step
  std::unique_ptr<GradientPath> path_;
  LossScale scale_;
};

}  // namespace lockstep::step
