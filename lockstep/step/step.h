// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/comm/group.h"
#include "lockstep/data/loader.h"
#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"
#include "lockstep/step/batch_statistics.h"
#include "lockstep/step/ema.h"
#include "lockstep/step/loss_scale.h"
#include "lockstep/step/optimizer.h"
#include "lockstep/step/reducer.h"

namespace lockstep::step {

// One rank's share of one global batch, as tensors on the device.
struct Samples {
  int64_t step = 0;         // of the run
  int64_t epoch = 0;        // with `step`: what random choices depend on
  int64_t global_size = 0;  // rows over all ranks, also those without a target
  at::Tensor values;        // [rows, 3, size, size] images, or what block `from` takes
  at::Tensor targets;       // int64 [rows]; -1: no part in anything
  size_t from = 0;          // the first block to run

  int64_t rows() const { return targets.size(0); }
};

// The images as a channels-last tensor over the batch's own memory (on the CPU: no copy; the batch must live on).
Samples to_samples(const data::Batch& batch, at::Device device);

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

struct StepOptions {
  spec::Training training;
  at::Device device = at::kCPU;
  size_t train_from = 0;     // blocks before it are frozen: no gradient, batch norms as in evaluation
  bool freeze_norm = false;  // trained blocks run as in evaluation too: small sets must not bend the statistics
  Ema* ema = nullptr;        // updated after each step
};

// THE step: forward, loss, backward with summed gradients, clipping, optimizer, moving average. `train` runs it,
// `bench` times it. One Step lives as long as its set of trained blocks. The gradient is that of the mean over the
// samples of the whole batch, whatever the ranks and micro-batches; batch norm sees one rank's micro-batch. After a
// step every rank holds the same weights, statistics and optimizer state.
class Step {
 public:
  Step(model::Network& network, comm::Group& group, StepOptions options);

  // Every rank calls it for the same step; `want_stop` of any rank comes out as `stop` on all.
  StepResult run(const Samples& samples, double lr, bool want_stop = false);

  Optimizer& optimizer() { return optimizer_; }
  // What a resume needs: the optimizer's state and, where there is one, the loss scale. The tensors are the live ones.
  std::vector<model::Named> state() const;
  // User error naming the first tensor that is missing or has another shape.
  void load_state(const std::vector<model::Named>& state);

 private:
  struct Sums {  // over this rank's rows
    double loss = 0;
    int64_t correct = 0;
    int64_t samples = 0;
  };
  Sums accumulate_gradients(const Samples& samples);
  void pass(const Samples& part, int64_t global_size, Sums& sums);
  void pass_nothing();
  model::Output forward(const Samples& part, const at::Tensor& values) const;
  void finish(StepResult& result, const Samples& samples, double lr);

  model::Network& network_;
  comm::Group& group_;
  StepOptions options_;
  Optimizer optimizer_;
  Reducer reducer_;
  BatchStatistics statistics_;
  LossScale scale_;
  std::vector<bool> recomputed_;  // by block
  double exposed_seconds_ = 0;
};

}  // namespace lockstep::step
