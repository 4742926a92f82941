// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/saver.h"

#include <ATen/ops/tensor.h>

#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/ranks/rank_error.h"
#include "lockstep/run/identity.h"
#include "lockstep/run/most_checkpoints.h"
#include "lockstep/training/agreement.h"
#include "lockstep/weights/preprocessing.h"

namespace lockstep::training {

using base::Error;
using base::Json;
using base::text;

namespace {

// What whoever starts from these weights needs to know of them.
weights::TensorMetadata metadata_of(const TrainingContext& context) {
  weights::TensorMetadata metadata{{"format", "pt"},
                                   {"model", context.job.model.name},
                                   {"classes", Json::array_of(context.collections.train.classes).dump(-1)}};
  weights::add_to(metadata, weights::preprocessing_of(context.job.data));
  return metadata;
}

}  // namespace

Saver::Saver(TrainingContext& context)
    : context_(context), clock_(context.job.checkpoint.mean_time_between_failures, base::steady_seconds()) {
  const TrainOptions& options = context.options;
  if (context.job.training.zero > 0 && context.group.size() > 1) {
    node_part_ = std::make_unique<NodePart>(context.group, node_of(options), options.device);
  }
  if (context.folder || (node_part_ && node_part_->writes())) {
    const run::RunPaths paths{options.run};
    background_ = std::make_unique<run::BackgroundSave>(run::CheckpointStore(paths.checkpoints(), options.disk));
  }
}

bool Saver::is_due() {
  const TrainingState& state = context_.state;
  if (state.nonfinite > 0) return false;  // steps that changed nothing: a rewind shall lead to before them
  const auto& checkpoint = context_.job.checkpoint;
  if (context_.timetable.due(state.step, checkpoint.milestone_epochs)) return true;
  if (checkpoint.every_epochs > 0) return context_.timetable.due(state.step, checkpoint.every_epochs);
  if (state.step < next_look_) return false;
  run::SaveClock::Look look;
  if (context_.folder) look = clock_.look(state.step, base::steady_seconds(), state.step_seconds);
  at::Tensor said = at::tensor({look.save ? int64_t{1} : int64_t{0}, look.next_step}, at::kLong);
  context_.group.broadcast(said, 0);
  next_look_ = said[1].item<int64_t>();
  return said[0].item<int64_t>() != 0;
}

// Where the run stands, and how to keep it.
run::Save Saver::describe(bool best) const {
  const spec::Job& job = context_.job;
  run::Save save;
  save.step = context_.state.step;
  save.keep = job.checkpoint.keep;
  save.best = best;
  if (job.checkpoint.milestone_epochs > 0) {
    save.milestone_steps = context_.timetable.steps_of(job.checkpoint.milestone_epochs);
  }
  save.before_commit = [this] { context_.folder->ensure_held(); };
  save.state = Json::object();
  save.state["epoch"] = context_.timetable.epoch_at(save.step);
  save.state["loader"] = context_.data_state().to_json();
  context_.state.write(save.state);
  save.state["classes"] = Json::array_of(context_.collections.train.classes);
  save.state["identity"] = run::identity(job, context_.fingerprints.train, context_.fingerprints.validate);
  return save;
}

void Saver::copy_whole(const step::Step& step, run::Save& save) {
  save.parts.push_back(copy_.part("weights.safetensors", model::all_tensors(context_.network), metadata_of(context_)));
  save.parts.push_back(copy_.part("optimizer.safetensors", step.state()));
  if (context_.ema)
    save.parts.push_back(copy_.part("ema.safetensors", context_.ema->averages(), metadata_of(context_)));
}

void Saver::copy_partitions(const step::Step& step, run::Save& save) {
  const step::CutState cut = step.cut_state();
  auto part = node_part_->take(cut);
  if (context_.folder) {
    try {  // one makes it for all: they would all try at once
      context_.options.disk->make_folder(context_.folder->paths().checkpoints());
    } catch (const Error&) {  // the save itself says so
    }
  }
  context_.group.barrier();  // no writer is at the attempt before: rank 0 removes what that left
  const int64_t at = context_.state.step;
  const std::string token = comm::broadcast_text(context_.group, text(at, "-", model::name_of_now()));
  if (!context_.folder) {
    if (part) background_->start_partition(at, token, std::move(*part));
    return;
  }
  std::set<std::string> partitioned;
  for (const auto& whole : cut.wholes()) {
    if (whole.weight) partitioned.insert(whole.name);
  }
  auto weights = model::all_tensors(context_.network);
  std::erase_if(weights, [&](const model::Named& entry) { return partitioned.contains(entry.name); });
  save.parts.push_back(copy_.part("weights.safetensors", weights, metadata_of(context_)));
  save.parts.push_back(copy_.part("optimizer.safetensors", cut.shared()));
  if (context_.ema)
    save.parts.push_back(copy_.part("ema.safetensors", context_.ema->averages(), metadata_of(context_)));
  save.parts.push_back(std::move(*part));
  save.token = token;
  save.partitions = node_part_->names();
  describe_cut(save.state, cut, save.partitions);
  save.partitions.erase(save.partitions.begin());  // its own
}

void Saver::save(const step::Step& step, const Evaluation::Outcome& evaluated) {
  if (!background_ && !node_part_) return;
  const run::Activity::During saving(*context_.options.activity, run::Phase::saving);
  const double start = base::steady_seconds();
  settle(Wait::yes);
  if (context_.folder) context_.folder->ensure_held();  // not ours any more: this session ends
  const int64_t at = context_.state.step;
  const bool last = context_.stop.is_set() || context_.is_done();
  run::Save save;
  if (context_.folder) save = describe(evaluated.best);
  node_part_ ? copy_partitions(step, save) : copy_whole(step, save);
  if (!context_.folder) return;
  pending_ = {.best = evaluated.best, .last = last, .stall = 0, .best_before = evaluated.best_before};
  background_->start(std::move(save));
  clock_.began(base::steady_seconds());
  pending_.stall = base::steady_seconds() - start;
  stall_seconds_ += pending_.stall;
  context_.ledger->stalled(at, pending_.stall);  // the last one is waited for later: the state is hashed meanwhile
}

void Saver::save_durably(const step::Step& step) {
  save(step);
  settle(Wait::yes);
}

void Saver::settle_best() {
  if (background_ && pending_.best) settle(Wait::yes);
}

void Saver::settle(Wait wait) {
  if (!background_) return;
  const auto outcome = wait == Wait::yes ? background_->wait() : background_->outcome();
  if (!outcome || !context_.folder) return;  // rank 0 hears of a failed partition from the row that it waits for
  outcome->failure ? tell_failed(*outcome) : tell_saved(*outcome);
}

void Saver::tell_saved(const run::BackgroundSave::Outcome& outcome) {
  Ledger& ledger = *context_.ledger;
  ++saves_;
  context_.state.save_seconds = outcome.seconds;
  clock_.measured({pending_.stall, outcome.processor_seconds, outcome.seconds});
  const auto& checkpoint = context_.job.checkpoint;
  const bool by_clock = checkpoint.every_epochs <= 0;
  ledger.saved(outcome, pending_.stall, by_clock ? std::optional(clock_.interval()) : std::nullopt);
  if (by_clock && saves_ == 1 && !pending_.last) {
    ledger.say(text(
        "checkpoints: one every ", base::duration_text(clock_.interval()), ", by Young's rule: a save took ",
        base::duration_text(outcome.seconds), " and held the steps up for ", base::duration_text(pending_.stall),
        "; checkpoint.mean_time_between_failures is ", base::duration_text(checkpoint.mean_time_between_failures)));
  }
  if (!outcome.untidy.empty()) {
    ledger.say(text("saved at step ", outcome.step, "; older checkpoints stay until the next save: ", outcome.untidy));
  }
  if (context_.watch) context_.watch->saved(outcome.seconds);
  ledger.sync();
}

void Saver::tell_failed(const run::BackgroundSave::Outcome& outcome) {
  context_.folder->ensure_held();
  if (pending_.best) context_.state.scores.best = pending_.best_before;  // what was never saved is not the best
  try {
    std::rethrow_exception(outcome.failure);
  } catch (const std::exception& thrown) {
    // A full disk must not cost the hours trained so far: there may be room again at the next save. A stop needs it.
    if (pending_.last) {
      save_the_weights_at_least();
      throw;
    }
    const Error error = ranks::rank_error(thrown);
    Json fields = Json::object();
    fields["step"] = outcome.step;
    fields["message"] = std::string(error.what());
    context_.ledger->note("save_failed", fields);
    context_.ledger->say(text("could not save at step ", outcome.step, ", training goes on: ", error.what(),
                              error.fix().empty() ? "" : text("; ", error.fix())));
  }
}

// The last checkpoint of a training that is done cannot be written: its weights are smaller, and what it was for.
// Partitions are only brought together for a save.
void Saver::save_the_weights_at_least() {
  if (context_.stop.is_set() || node_part_) return;
  try {
    export_weights(context_);
    context_.ledger->say(text("no room for the last checkpoint; the trained weights are in ",
                              context_.folder->paths().weights().string()));
  } catch (const std::exception&) {  // the save's own error tells what is wrong
  }
}

void Saver::say_budget(int64_t bytes) {
  if (!context_.ledger || bytes <= told_bytes_) return;
  told_bytes_ = bytes;
  const auto& checkpoint = context_.job.checkpoint;
  const bool validates = context_.collections.validate.has_value();
  const auto each = static_cast<double>(bytes);
  std::string which = text(checkpoint.keep, " newest, one being written");
  if (validates) which += ", the best";
  int64_t milestones = 0;
  if (checkpoint.milestone_epochs > 0) {
    milestones = context_.timetable.total_steps() / context_.timetable.steps_of(checkpoint.milestone_epochs);
    which += text(", ", milestones, " milestones");
  }
  const int64_t count = run::most_checkpoints(checkpoint.keep, validates, milestones);
  const double all = each * static_cast<double>(count);
  const auto free = static_cast<double>(context_.options.disk->free_bytes(context_.folder->paths().root));
  context_.ledger->say(text("checkpoints: ", base::format_bytes(each), " each, up to ", count, " at once (", which,
                            "): ", base::format_bytes(all), " of ", base::format_bytes(free), " free",
                            checkpoint.every_epochs > 0 ? "" : "; how often: by Young's rule",
                            all <= free ? ""
                            : milestones > checkpoint.keep
                                ? "; NOT ENOUGH: free some space, or raise checkpoint.milestone_epochs"
                                : "; NOT ENOUGH: free some space, or lower checkpoint.keep"));
}

std::string export_weights(const TrainingContext& context) {
  return model::write_tensors(context.folder->paths().weights(),
                              context.ema ? context.ema->averages() : model::all_tensors(context.network),
                              metadata_of(context));
}

std::string state_sha256(const TrainingContext& context, const std::vector<model::Named>& optimizer) {
  if (!context.folder) return "";
  std::vector<model::Named> all = model::all_tensors(context.network);
  for (const auto& entry : optimizer) all.push_back({text("optimizer.", entry.name), entry.tensor});
  if (context.ema) {
    for (const auto& entry : context.ema->averages()) all.push_back({text("ema.", entry.name), entry.tensor});
  }
  return model::tensors_sha256(std::move(all), context.data_state().to_json().dump(-1));
}

}  // namespace lockstep::training
