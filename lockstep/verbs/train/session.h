// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lockstep/data/loader.h"
#include "lockstep/model/network.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/step/ema.h"
#include "lockstep/step/step.h"
#include "lockstep/verbs/train/collections.h"
#include "lockstep/verbs/train/features.h"
#include "lockstep/verbs/train/ledger.h"
#include "lockstep/verbs/train/plan_watch.h"
#include "lockstep/verbs/train/timetable.h"
#include "lockstep/verbs/train/train.h"

namespace lockstep::verbs {

// One sitting of a run, from the first or the next step to the end or a stop. Every rank has one; rank 0 also holds
// the run folder and writes all that is written.
class Session {
 public:
  Session(const spec::Job& job, const TrainOptions& options, comm::Group& group);

  void resume();  // goes to the newest good checkpoint, if there is one
  void run(const Stage& stage);
  TrainResult finish();  // exports the weights, unless stopped

  const Timetable& timetable() const { return timetable_; }
  int64_t step() const { return step_; }
  bool stopped() const { return !stop_reason_.empty(); }

 private:
  struct Source;  // where a stage's batches come from
  Source open_source(const Stage& stage, size_t from);
  std::unique_ptr<data::Loader> loader(const data::Collection& collection, data::Use use) const;
  // Nothing when a stop was asked for meanwhile; stop_reason_ says why.
  std::optional<Features> features(const data::Collection& collection, size_t to, const char* what);
  void take_step(step::Step& step, Source& source);
  void check_finite(const step::StepResult& result);
  void after_step(step::Step& step, Source& source, bool stop);
  bool evaluate(Source& source);                        // true when it is the best so far
  bool save(step::Step& step, bool best);               // false: the disk did not take it, training goes on
  void say_pace(Source& source);                        // after an epoch: when the loader holds it back
  void report_bad_samples(const data::Loader* loader);  // on all ranks at once; none: nothing
  std::string why_stop(bool evaluates) const;
  bool evaluation_may_be_cut() const;  // its length is not known yet and the time that is left may not do
  base::Json start_fields() const;
  void check_virtual_ranks() const;                        // user error before any sample is read
  std::string state_sha256(const step::Step& step) const;  // of all that a checkpoint holds; on rank 0
  double seconds() const;                                  // of training, all sittings

  double started_;  // first of all: whoever gave the walltime counts the scan of the data too
  TrainOptions options_;
  comm::Group& group_;
  std::unique_ptr<run::RunFolder> folder_;  // rank 0 only; before anything is read or computed
  Collections collections_;
  spec::Job job_;
  Timetable timetable_;
  model::Network network_;
  std::unique_ptr<step::Ema> ema_;
  std::string data_sha256_;
  std::unique_ptr<Ledger> ledger_;    // rank 0 only
  std::unique_ptr<PlanWatch> watch_;  // rank 0 only, and only with a plan
  std::string checkpoint_;            // the folder this sitting went on from; empty: from the start

  int64_t step_ = 0;
  int64_t resumed_at_ = 0;
  int64_t nonfinite_ = 0;            // steps in a row
  std::set<std::string> bad_files_;  // skipped so far, of all ranks and sittings; alike on every rank
  std::string stop_reason_;
  std::string state_sha256_;   // at the end of the run
  double seconds_before_ = 0;  // of earlier sittings
  double step_seconds_ = 0;
  double save_seconds_ = 1;
  double evaluate_seconds_ = 0;
  std::optional<double> best_, top1_, loss_;
};

}  // namespace lockstep::verbs
