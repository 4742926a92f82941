// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "lockstep/loader/collections.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/loader_rules.h"
#include "lockstep/model/network.h"
#include "lockstep/objective/objective.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/timetable.h"
#include "lockstep/step/ema.h"
#include "lockstep/task/task.h"
#include "lockstep/training/ledger.h"
#include "lockstep/training/plan_watch.h"
#include "lockstep/training/sample_history.h"
#include "lockstep/training/stop.h"
#include "lockstep/training/training_state.h"

namespace lockstep::training {

// What the parts of one session of a run work on together: each rank has one, and its parts refer to it. Rank 0 also
// holds the run folder and writes all that is written, but for partitions of other nodes (training.zero).
struct TrainingContext {
  // Every rank calls it. Errors for all that can be known to go wrong before any sample is read: ranks that differ,
  // batches that cannot be cut, features or loaders that do not fit into memory.
  TrainingContext(const spec::Job& job, const TrainOptions& options, comm::Group& group);
  TrainingContext(const TrainingContext&) = delete;
  TrainingContext& operator=(const TrainingContext&) = delete;

  run::LoaderState data_state() const;  // what the loader gives next
  bool is_done() const;                 // no step is left: the last one was taken, or training.early_stop ended it
  loader::LoaderSettings loader_settings() const;

  TrainOptions options;
  Stop stop;  // early: see there
  comm::Group& group;
  std::unique_ptr<run::RunFolder> folder;  // rank 0 only; before anything is read or computed
  loader::Fingerprints fingerprints;       // made with the collections, and therefore before them
  loader::Collections collections;
  bool keeps_order;  // data.order was left to the storage: a resume keeps what the run began with
  spec::Job job;     // resolved
  run::Timetable timetable;
  std::shared_ptr<const task::Task> task;
  std::shared_ptr<const objective::Objective> objective;
  model::Network network;
  TrainingState state;
  std::set<std::string> told_left_out = {};  // samples of this session whose bad objects were told
  std::string checkpoint;                  // the folder whose tensors the run went on from last; empty: from the start
  std::unique_ptr<step::Ema> ema;          // with training.ema_decay, once the weights are there
  std::unique_ptr<SampleHistory> history;  // null: not asked for
  std::unique_ptr<Ledger> ledger;          // rank 0 only
  std::unique_ptr<PlanWatch> watch;        // rank 0 only, and only with a plan
};

// Computes with so many threads from now on, and writes it down. Every rank names the same number.
void use_threads(TrainingContext& context, int64_t threads);

}  // namespace lockstep::training
