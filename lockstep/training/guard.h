// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/step/step.h"
#include "lockstep/training/feed.h"
#include "lockstep/training/saver.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// Watches over what goes wrong inside training: samples that cannot be read, a loss that is not finite or rises
// suddenly, ranks that no longer hold the same weights. Where that may help it takes the run back to a checkpoint and
// leaves out the data that led there; else it throws. Alike on every rank.
class Guard {
 public:
  Guard(TrainingContext& context, Saver& saver) : context_(context), saver_(saver) {}

  // After a step of `rows`. False: the run went back to an earlier step; this phase's Step and Feed are of another
  // position now.
  bool accepts(const step::StepResult& result, int64_t rows, step::Step& step, const Feed& feed);
  // Machine error when they do not; asked every training.check_sync_every steps, and before a save.
  void check_ranks_agree(bool saves) const;

  int64_t num_rewinds() const { return num_rewinds_; }  // of this session

 private:
  enum class Fate { goes_on, went_back };
  void check_readable(const step::StepResult& result, int64_t rows, const Feed& feed);
  Fate check_finite(const step::StepResult& result, step::Step& step);
  Fate check_spike(const step::StepResult& result, step::Step& step);
  std::string rewind(const std::string& why, step::Step& step);  // empty: it went back; else why it did not
  std::string find_checkpoint() const;                           // to go back to; empty: there is none
  void tell_rewind(const std::string& why, int64_t from) const;

  TrainingContext& context_;
  Saver& saver_;
  int64_t unread_ = 0;  // samples in a row, in whole steps of them
  int64_t num_rewinds_ = 0;
};

}  // namespace lockstep::training
