// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "lockstep/loader/collections.h"
#include "lockstep/loader/loader.h"
#include "lockstep/loader/loader_rules.h"
#include "lockstep/model/network.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/background_save.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/save_clock.h"
#include "lockstep/run/timetable.h"
#include "lockstep/step/ema.h"
#include "lockstep/step/step.h"
#include "lockstep/training/features.h"
#include "lockstep/training/ledger.h"
#include "lockstep/training/node_part.h"
#include "lockstep/training/plan_watch.h"
#include "lockstep/training/sample_history.h"
#include "lockstep/training/spike.h"
#include "lockstep/training/train.h"

namespace lockstep::training {

// One sitting of a run, from the first or the next step to the end or a stop. Every rank has one; rank 0 also holds
// the run folder and writes all that is written, but for the parts of checkpoints of other nodes (training.zero).
class Session {
 public:
  Session(const spec::Job& job, const TrainOptions& options, comm::Group& group);

  void resume();                      // goes to the newest good checkpoint, if there is one
  void run(const run::Stage& stage);  // of next_stage()
  TrainResult finish();               // exports the weights, unless stopped

  bool stopped() const { return !stop_reason_.empty(); }
  // Where the run goes on; none: there is nothing left to do. A rewind may lead into an earlier stage.
  const run::Stage* next_stage() const;

 private:
  struct Source;  // where a stage's batches come from
  Source open_source(const run::Stage& stage, size_t from);
  loader::LoaderSeat seat() const;
  std::unique_ptr<loader::Loader> loader(const loader::Collection& collection, loader::Use use) const;
  std::unique_ptr<loader::Loader> validation_reader() const;
  void stage_shards();     // data.stage: says how long it takes, starts it; nobody waits for it
  void tell_of_staging();  // once, when the copies are there
  // Nothing when a stop was asked for meanwhile; stop_reason_ says why.
  std::optional<Features> features(const loader::Collection& collection, size_t to, const char* what);
  run::LoaderState data_state() const;  // what the loader gives next
  void take_step(step::Step& step, Source& source);
  step::Samples next_samples(Source& source, double& waited);
  void after_step(step::Step& step, Source& source, bool stop);
  bool evaluation_due(int64_t step) const;
  bool owes_evaluation() const;  // it was due where the run stands, and a stop or a kill came before it
  void catch_up(step::Step& step, Source& source);
  struct Verdict {  // alike on every rank
    bool best = false;
    std::optional<double> best_before = {};  // what counts again when the save of this one fails
  };
  Verdict evaluate(Source& source);

  // Saving: the state is copied, training goes on while a thread writes the copy. All ranks call these alike.
  enum class Wait { no, yes };
  bool save_is_due();                                         // by the job's distance, or by the clock of rank 0
  void save(const step::Step& step, const Verdict& verdict);  // goes on while it is written
  void save_durably(const step::Step& step);
  run::Save describe_save(bool best) const;
  void copy_whole(const step::Step& step, run::Save& save);  // rank 0 has everything
  // training.zero: nothing is gathered but a node's pieces; its first rank writes them. Every rank calls it.
  void copy_pieces(const step::Step& step, run::Save& save);
  void settle(Wait wait);  // takes the outcome of a save under way, if it is done, and tells it
  void save_the_weights_at_least();
  std::string export_weights() const;  // RUN/weights.safetensors; its SHA-256
  void say_budget(int64_t bytes);      // what checkpoints of so much will need of the disk; again only when it is more
  // Why to stop before the first step; empty: go on.
  std::string check_walltime() const;

  // What goes wrong inside training. Alike on every rank.
  void check_readable(const step::StepResult& result, int64_t rows, const Source& source);
  void check_finite(const step::StepResult& result);
  void check_spike(const step::StepResult& result);
  void check_ranks_agree(bool saves);
  void check_start();  // the ranks begin with the same weights
  step::StepResult replayed(step::Step& step, const step::Samples& samples, double lr, bool want_stop);
  std::string rewind(const std::string& why);  // empty: it went back; else why it did not
  void restore(const base::Path& folder);      // network, moving average and place from that checkpoint

  bool agreed(bool of_rank_0);                            // rank 0's answer, on every rank
  void say_pace(Source& source);                          // after an epoch: when the loader holds it back
  void report_bad_samples(const loader::Loader* loader);  // on all ranks at once; none: nothing
  std::string why_stop(bool evaluates) const;
  std::string reason_of_all(const std::string& mine);  // of a stop that any rank asked for; every rank calls it
  bool evaluation_may_be_cut() const;  // its length is not known yet and the time that is left may not do
  base::Json start_fields() const;
  void check_features() const;                                                 // user error before any sample is read
  std::string state_sha256(const std::vector<model::Named>& optimizer) const;  // of all that is saved; on rank 0
  double seconds() const;                                                      // of training, all sittings

  double started_;  // first of all: whoever gave the walltime counts the scan of the data too
  TrainOptions options_;
  comm::Group& group_;
  std::unique_ptr<run::RunFolder> folder_;  // rank 0 only; before anything is read or computed
  loader::Collections collections_;
  loader::Fingerprints fingerprints_;
  bool told_of_staging_ = false;
  bool keeps_order_;  // data.order was left to the storage: a resume keeps what the run began with
  spec::Job job_;
  run::Timetable timetable_;
  model::Network network_;
  std::unique_ptr<step::Ema> ema_;
  std::unique_ptr<Ledger> ledger_;    // rank 0 only
  std::unique_ptr<PlanWatch> watch_;  // rank 0 only, and only with a plan
  std::string checkpoint_;            // the folder this sitting went on from; empty: from the start

  std::function<void()> assemble_ = [] {};  // the phase under way has whole weights in the network
  int64_t step_ = 0;
  int64_t resumed_at_ = 0;
  int64_t data_shift_ = 0;    // batches that rewinds left out: step s takes the data of s + data_shift_
  int64_t unread_ = 0;        // samples in a row, in whole steps of them
  int64_t nonfinite_ = 0;     // steps in a row
  int64_t rewinds_ = 0;       // in a row, without getting beyond rewound_from_
  int64_t rewound_from_ = 0;  // the furthest step so far that a rewind gave up
  int64_t rewound_to_ = 0;
  int64_t num_rewinds_ = 0;  // of this sitting
  bool rewound_ = false;     // the stage's step and source are of another place now
  SpikeDetector spikes_;
  std::set<std::string> bad_files_;  // skipped so far, of all ranks and sittings; alike on every rank
  std::string stop_reason_;
  std::string state_sha256_;   // at the end of the run
  double seconds_before_ = 0;  // of earlier sittings
  double step_seconds_ = 0;
  double save_seconds_ = 1;  // until durable
  double stall_seconds_ = 0;
  int64_t saves_ = 0;
  int64_t told_bytes_ = 0;  // of a checkpoint
  int64_t next_look_ = 0;   // the step after which the ranks hear from rank 0 whether to save
  run::SaveClock clock_;
  model::HostCopy copy_;
  struct Pending {  // about the save under way
    bool best = false;
    bool last = false;  // before the end of this sitting: a failure ends it
    double stall = 0;
    std::optional<double> best_before;
  } pending_;
  std::unique_ptr<NodePart> node_part_;         // only with training.zero and several ranks
  std::unique_ptr<run::BackgroundSave> saver_;  // rank 0; with node_part_ the first rank of each node
  std::unique_ptr<SampleHistory> history_;
  double evaluate_seconds_ = 0;
  int64_t evaluated_ = 0;  // the last step behind which it was evaluated
  std::optional<double> best_, top1_, loss_;
  bool loss_cut_ = false;  // loss_ is a bound from below
};

}  // namespace lockstep::training
