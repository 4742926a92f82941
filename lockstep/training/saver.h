// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/model/snapshot.h"
#include "lockstep/run/background_save.h"
#include "lockstep/run/save_clock.h"
#include "lockstep/training/evaluation.h"
#include "lockstep/training/node_part.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// Saves the run: the state is copied, and training goes on while a thread writes the copy. Rank 0 writes everything;
// with training.zero nothing is gathered but a node's partitions, and the first rank of each node writes those. All
// ranks call all of it alike.
class Saver {
 public:
  explicit Saver(TrainingContext& context);

  bool is_due();                          // by the job's distance, or by the clock of rank 0
  void forget_look() { next_look_ = 0; }  // after a rewind: the ranks hear from that clock at once
  void save(const step::Step& step, const Evaluation::Outcome& evaluated = {});  // goes on while it is written
  void save_durably(const step::Step& step);

  enum class Wait { no, yes };
  void settle(Wait wait);  // takes the outcome of a save under way, if it is done, and tells it
  void settle_best();      // waits for a save of the best so far: only what was saved is the best
  bool is_under_way() const { return background_ && background_->under_way(); }

  // Says what checkpoints of so much will need of the disk; again only when it is more.
  void say_budget(int64_t bytes);

  int64_t num_saves() const { return saves_; }             // of this session
  double stall_seconds() const { return stall_seconds_; }  // how long its steps waited for them

 private:
  run::Save describe(bool best) const;
  void copy_whole(const step::Step& step, run::Save& save);
  void copy_partitions(const step::Step& step, run::Save& save);
  void tell_saved(const run::BackgroundSave::Outcome& outcome);
  void tell_failed(const run::BackgroundSave::Outcome& outcome);
  void save_the_weights_at_least();

  TrainingContext& context_;
  int64_t saves_ = 0;
  double stall_seconds_ = 0;
  int64_t told_bytes_ = 0;  // of a checkpoint
  int64_t next_look_ = 0;   // the step after which the ranks hear from rank 0 whether to save
  run::SaveClock clock_;
  struct Pending {  // about the save under way
    bool best = false;
    bool last = false;  // before the end of this session: a failure ends it
    double stall = 0;
    std::optional<double> best_before;
  } pending_;
  model::HostCopy copy_;
  std::unique_ptr<NodePart> node_part_;              // only with training.zero and several ranks
  std::unique_ptr<run::BackgroundSave> background_;  // rank 0; with node_part_ the first rank of each node
};

// RUN/weights.safetensors, on rank 0; its SHA-256.
std::string export_weights(const TrainingContext& context);

// Of all that is saved, with this state of the optimizer; on rank 0, elsewhere empty.
std::string state_sha256(const TrainingContext& context, const std::vector<model::Named>& optimizer);

}  // namespace lockstep::training
