// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/step/step.h"
#include "lockstep/training/evaluation.h"
#include "lockstep/training/feed.h"
#include "lockstep/training/guard.h"
#include "lockstep/training/rank_times.h"
#include "lockstep/training/saver.h"
#include "lockstep/training/shard_staging.h"
#include "lockstep/training/timeline.h"
#include "lockstep/training/train.h"
#include "lockstep/training/training_context.h"

namespace lockstep::training {

// One session of a run, from the first or the next step to the end or a stop. Every rank has one. It says in which
// order its parts act; what they do is theirs.
class Session {
 public:
  Session(const spec::Job& job, const TrainOptions& options, comm::Group& group);

  void resume();  // goes to the newest good checkpoint, if there is one
  // Where the run goes on; none: there is nothing left to do. A rewind may lead into an earlier phase.
  const run::PhaseSpan* next_phase() const;
  void run(const run::PhaseSpan& span);  // of next_phase()
  TrainResult finish();                  // exports the weights, unless stopped

 private:
  void save_what_must_not_be_lost(const step::Step& step);  // before the first step of a phase here
  void catch_up(step::Step& step, const Feed& feed);        // on an evaluation that is owed
  void take_step(step::Step& step, Feed& feed);
  void after_step(step::Step& step, Feed& feed);
  void tell_pace(Feed& feed);  // every rank, now and then
  void stop_without_data(const loader::GaveUp& hung);
  void tell_early_end();
  Evaluation::Outcome evaluate(step::Step& step, const Feed& feed);
  void write_timeline();                         // once its steps are over
  std::string wants_stop(bool evaluates) const;  // why this rank does; empty: it goes on
  void write_end(TrainResult& result);           // rank 0

  TrainingContext context_;
  ShardStaging staging_;
  Saver saver_;
  Guard guard_;
  Evaluation evaluation_;
  RankTimes rank_times_;
  std::unique_ptr<Timeline> timeline_;  // null: not asked for
  int64_t resumed_at_ = 0;
  bool rewound_ = false;      // the phase's Step and Feed are of another position now
  std::string state_sha256_;  // at the end of the run
};

}  // namespace lockstep::training
