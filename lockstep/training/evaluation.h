// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/task/task.h"
#include "lockstep/training/feed.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// Validation while training: when it is due, the pass over the samples, and whether it is the best so far. Alike on
// every rank.
class Evaluation {
 public:
  explicit Evaluation(TrainingContext& context) : context_(context) {}

  bool is_due(int64_t step) const;  // behind so many steps
  bool is_owed() const;             // it was due where the run stands, and a stop or a kill came before it
  // Its length is not known yet and the time that is left may not do. The answer of rank 0, on every rank: all call it.
  bool may_be_cut() const;

  struct Outcome {
    bool best = false;
    std::optional<double> best_before = {};  // what counts again when the save of this one fails
  };
  // Every rank calls it. REQUIRES: whole weights in the network, and no save of a best one under way.
  Outcome run(const Feed& feed);

  void write(TrainResult& result) const;
  void write(base::Json& end) const;  // the journal's last event

 private:
  std::unique_ptr<task::Score> measure(const Feed& feed);
  std::unique_ptr<task::Score> measure_averages(const Feed& feed);  // of the moving average, where there is one

  TrainingContext& context_;
};

}  // namespace lockstep::training
