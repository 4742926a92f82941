// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/session.h"

#include <ATen/Parallel.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/sittings.h"
#include "lockstep/loader/loader_needs.h"
#include "lockstep/run/threads.h"
#include "lockstep/site/launch.h"
#include "lockstep/spec/rank_rules.h"
#include "lockstep/step/phase_norms.h"
#include "lockstep/training/agreed_threads.h"
#include "lockstep/training/agreement.h"
#include "lockstep/training/session_source.h"

namespace lockstep::training {

using base::Json;
using base::text;

namespace {

std::unique_ptr<run::RunFolder> hold(const TrainOptions& options, const comm::Group& group) {
  return group.rank() == 0 ? std::make_unique<run::RunFolder>(options.run, options.voice.say) : nullptr;
}

// The job resolved, before anything is made of it; the same on every rank. An order left to the storage may come out
// differently where nodes see the data through different file systems: then that of rank 0 counts.
spec::Job agreed_job(const spec::Job& job, const loader::Collections& collections,
                     const loader::Fingerprints& fingerprints, const TrainOptions& options, comm::Group& group) {
  spec::Job resolved = loader::resolve(job, collections);
  spec::Job compared = resolved;
  compared.data.order = job.data.order;
  check_terms(terms_of(compared, collections, fingerprints, options), node_of(options), group);
  return resolved;
}

int64_t stored_bytes(const std::vector<model::Named>& tensors) {
  int64_t bytes = 0;
  for (const auto& entry : tensors) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  return bytes;
}

}  // namespace

Session::Session(const spec::Job& job, const TrainOptions& options, comm::Group& group)
    : started_(base::steady_seconds()),
      options_(options),
      group_(group),
      folder_(hold(options, group)),
      collections_(loader::open_collections(job)),
      fingerprints_(loader::fingerprints_of(collections_)),
      keeps_order_(job.data.order == spec::SampleOrder::by_storage),
      job_(agreed_job(job, collections_, fingerprints_, options, group)),
      timetable_(job_.training, static_cast<int64_t>(collections_.train.samples.size())),
      network_(model::make_network(job_.model, job_.data.image_size, job_.training.seed, options.device)),
      spikes_(job_.training.spike_factor),
      clock_(job_.checkpoint.mean_time_between_failures, base::steady_seconds()) {
  spec::check_batch_on_ranks(job_.training, group.size());
  at::set_num_threads(static_cast<int>(agree_on_threads(run::compute_threads(job_.training), group)));
  step::check_norms_of_phases(job_, network_, options.device, static_cast<int64_t>(collections_.train.samples.size()),
                              group.size());
  check_features();
  // Made first when the first epoch is over, which is late to hear of it.
  if (collections_.validate)
    loader::check_loader_memory(*collections_.validate, loader::validation_loader(job_, seat()));
  if (options.history) history_ = std::make_unique<SampleHistory>(options.run, group.rank(), group.size());
  if (job_.training.zero > 0 && group.size() > 1) {
    node_part_ = std::make_unique<NodePart>(group, node_of(options), options.device);
  }
  if (folder_ || (node_part_ && node_part_->writes())) {
    const run::RunPaths paths{options.run};
    saver_ = std::make_unique<run::BackgroundSave>(run::CheckpointStore(paths.checkpoints(), options.disk));
  }
  if (folder_) ledger_ = std::make_unique<Ledger>(folder_->paths(), timetable_, options.voice);
}

const run::Stage* Session::next_stage() const {
  if (stopped()) return nullptr;
  if (owes_evaluation()) return &timetable_.stage_at(step_ - 1);  // as the step before it was taken
  return step_ < timetable_.total_steps() ? &timetable_.stage_at(step_) : nullptr;
}

void Session::run(const run::Stage& stage) {
  const size_t from = stage.phase.train_from.empty() ? 0 : network_.index_of(stage.phase.train_from);
  if (ledger_ && from > 0) {
    ledger_->say(text("phase: training from block '", stage.phase.train_from, "' on, ", from, " blocks frozen, steps ",
                      stage.begin + 1, " to ", stage.end));
  }
  const int64_t weights = stored_bytes(model::all_tensors(network_));  // whole still, whatever training.zero
  step::Step step(network_, group_,
                  {.training = job_.training,
                   .device = options_.device,
                   .train_from = from,
                   .freeze_norm = stage.phase.freeze_norm,
                   .ema = ema_.get()});
  if (step_ > stage.begin) {
    step.load_state(model::read_tensors(checkpoint_, "optimizer"));
  }
  say_budget(weights + step.state_bytes() + (ema_ ? stored_bytes(ema_->averages()) : 0));
  assemble_ = [&step] { step.assemble(); };
  Source source = open_source(stage, from);
  // A stop while features were computed: what the phase before has trained is not to be lost.
  if (stopped() && step_ > resumed_at_) save(step, {});
  if (ledger_) ledger_->phase(stage);
  if (rewound_) save(step, {});  // that these data are left out must outlive a crash
  // A spike before the first save by the clock needs a place to go back to.
  if (step_ == 0 && !rewound_ && checkpoint_.empty() && job_.training.spike_factor > 0 && !stopped()) save(step, {});
  rewound_ = false;
  catch_up(step, source);
  while (step_ < stage.end && !stopped() && !rewound_) take_step(step, source);
  step.assemble();  // the next phase, and the end, find whole weights
  assemble_ = [] {};
  if (step_ == timetable_.total_steps()) {
    state_sha256_ = state_sha256(step.state([&](const std::string&) { return folder_ != nullptr; }));
  }
  report_bad_samples(source.loader.get());
}

step::Samples Session::next_samples(Source& source, double& waited) {
  if (source.train) {
    return feature_batch(*source.train, job_.training, data_state(), step_, group_, options_.device);
  }
  if (source.feeder) {
    step::Samples fed = source.feeder->next();
    waited = source.feeder->wait_seconds();
    fed.step = step_;
    return fed;
  }
  source.loader->recycle(std::move(source.batch));
  source.batch = source.loader->next();
  waited = source.batch.wait_seconds;
  step::Samples samples = step::to_samples(source.batch, options_.device);
  samples.step = step_;
  return samples;
}

void Session::take_step(step::Step& step, Source& source) {
  if (watch_) watch_->before_step(timetable_.ends_epoch(step_));
  const double start = base::steady_seconds();
  run::Activity& activity = *options_.activity;
  activity.enter(run::Phase::data);
  double waited = 0;
  const step::Samples samples = next_samples(source, waited);
  activity.enter(run::Phase::computing);
  const double lr = timetable_.learning_rate(step_);
  const std::string why = why_stop(evaluation_due(step_ + 1));
  const step::StepResult result = replayed(step, samples, lr, !why.empty());
  activity.step_done(++step_);
  const double seconds = base::steady_seconds() - start;
  step_seconds_ = std::max(0.9 * step_seconds_, seconds);
  source.seconds += seconds;
  source.waited += waited;
  if (ledger_) ledger_->step(step_, result, lr, waited, seconds);
  if (history_) {
    history_->step(step_, source.batch, network_, step.shards());
    group_.barrier();  // no checkpoint of a step that a rank has not written down
  }
  if (watch_) {
    watch_->step(step_, {seconds, waited, result.compute_seconds, result.communicate_seconds, result.samples});
  }
  check_readable(result, samples.global_size, source);
  check_finite(result);
  if (!rewound_) check_spike(result);
  if (rewound_) return;
  if (result.stop && step_ < timetable_.total_steps()) stop_reason_ = reason_of_all(why);
  after_step(step, source, stopped());
}

std::string Session::why_stop(bool evaluates) const {
  std::string why = options_.stop();
  if (!why.empty() || !options_.seconds_left) return why;
  const double reserve = forecast::reserve_of(*options_.seconds_left, {.save = save_seconds_,
                                                                       .step = step_seconds_,
                                                                       .evaluation = evaluates ? evaluate_seconds_ : 0,
                                                                       .saving = saver_ && saver_->under_way()});
  return base::steady_seconds() - started_ + reserve > *options_.seconds_left ? "walltime" : "";
}

std::string Session::reason_of_all(const std::string& mine) {
  const auto asked = group_.all_gather(at::scalar_tensor(mine.empty() ? 0 : 1, at::kLong));
  const auto first = std::find_if(asked.begin(), asked.end(), [](const auto& flag) { return flag.item().toBool(); });
  base::ensure(first != asked.end(), "some rank has asked for the stop");
  const int64_t rank = first - asked.begin();
  const std::string reason = comm::broadcast_text(group_, mine, rank);
  return rank == 0 || reason == "walltime" ? reason : text(reason, " on rank ", rank);
}

void Session::after_step(step::Step& step, Source& source, bool stop) {
  settle(Wait::no);
  tell_of_staging();
  const bool evaluates = !stop && evaluation_due(step_);
  const bool saves = stop || step_ == timetable_.total_steps() || save_is_due();
  check_ranks_agree(saves);
  if (evaluates) step.assemble();
  if (evaluates && agreed(evaluation_may_be_cut())) save_durably(step);
  const Verdict verdict = evaluates ? evaluate(source) : Verdict{};
  if (saves || evaluates || timetable_.ends_epoch(step_)) report_bad_samples(source.loader.get());
  if (saves || verdict.best) save(step, verdict);
  if (ledger_ && timetable_.ends_epoch(step_)) {
    ledger_->end_epoch(step_);
    say_pace(source);
  }
  if (watch_ && timetable_.ends_epoch(step_)) watch_->end_epoch();
}

bool Session::agreed(bool of_rank_0) {
  at::Tensor answer = at::scalar_tensor(of_rank_0 ? 1 : 0, at::kLong);
  group_.broadcast(answer, 0);
  return answer.item<int64_t>() != 0;
}

double Session::seconds() const {
  return seconds_before_ + base::steady_seconds() - started_;
}

std::string Session::export_weights() const {
  const weights::TensorMetadata metadata{
      {"format", "pt"}, {"model", job_.model.name}, {"classes", Json::array_of(collections_.train.classes).dump(-1)}};
  return model::write_tensors(folder_->paths().weights(), ema_ ? ema_->averages() : model::all_tensors(network_),
                              metadata);
}

TrainResult Session::finish() {
  options_.activity->enter(run::Phase::ending);
  settle(Wait::yes);
  TrainResult result;
  result.finished = !stopped();
  result.stop_reason = stop_reason_;
  result.step = step_;
  result.total_steps = timetable_.total_steps();
  result.resumed_at = resumed_at_;
  result.seconds = seconds();
  result.bad_samples = static_cast<int64_t>(bad_files_.size());
  result.saves = saves_;
  result.save_seconds = saves_ > 0 ? save_seconds_ : 0;
  result.stall_seconds = stall_seconds_;
  result.stall_share = stall_seconds_ / (base::steady_seconds() - started_);
  result.rewinds = num_rewinds_;
  result.top1 = top1_;
  result.loss = loss_;
  result.loss_cut = loss_cut_;
  if (!folder_) return result;
  if (watch_) watch_->end(step_, stopped() ? std::nullopt : std::optional(result.seconds));
  Json fields = Json::object();
  fields["step"] = step_;
  fields["saves"] = saves_;
  fields["stall"] = result.stall_seconds;
  fields["stall_share"] = result.stall_share;
  if (stopped()) {
    fields["reason"] = stop_reason_;
    ledger_->note("stop", fields);
  } else {
    result.weights_sha256 = export_weights();
    fields["seconds"] = result.seconds;
    fields["weights_sha256"] = result.weights_sha256;
    if (state_sha256_.empty() && !checkpoint_.empty()) {  // killed between the last save and this
      state_sha256_ = state_sha256(model::read_tensors(checkpoint_, "optimizer"));
    }
    if (!state_sha256_.empty()) fields["state_sha256"] = result.state_sha256 = state_sha256_;
    if (top1_) fields["top1"] = *top1_;
    if (loss_) fields["loss"] = *loss_;
    ledger_->note("end", fields);
  }
  ledger_->sync();
  return result;
}

}  // namespace lockstep::training
