// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/forecast/sittings.h"
#include "lockstep/ranks/rank_error.h"
#include "lockstep/run/identity.h"
#include "lockstep/run/most_checkpoints.h"
#include "lockstep/training/session.h"

namespace lockstep::training {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

bool Session::save_is_due() {
  if (nonfinite_ > 0) return false;  // steps that changed nothing: a rewind shall lead to before them
  const auto& checkpoint = job_.checkpoint;
  if (timetable_.due(step_, checkpoint.milestone_epochs)) return true;
  if (checkpoint.every_epochs > 0) return timetable_.due(step_, checkpoint.every_epochs);
  if (step_ < next_look_) return false;
  run::SaveClock::Look look;
  if (folder_) look = clock_.look(step_, base::steady_seconds(), step_seconds_);
  at::Tensor said = at::tensor({look.save ? int64_t{1} : int64_t{0}, look.next_step}, at::kLong);
  group_.broadcast(said, 0);
  next_look_ = said[1].item<int64_t>();
  return said[0].item<int64_t>() != 0;
}

// Where the run stands, and how to keep it.
run::Save Session::describe_save(bool best) const {
  run::Save save;
  save.step = step_;
  save.keep = job_.checkpoint.keep;
  save.best = best;
  if (job_.checkpoint.milestone_epochs > 0) {
    save.milestone_steps = timetable_.steps_of(job_.checkpoint.milestone_epochs);
  }
  save.before_commit = [this] { folder_->ensure_held(); };
  save.state = Json::object();
  save.state["epoch"] = timetable_.epoch_at(step_);
  save.state["loader"] = data_state().to_json();
  save.state["seconds"] = seconds();
  save.state["step_seconds"] = step_seconds_;
  save.state["save_seconds"] = save_seconds_;
  save.state["evaluate_seconds"] = evaluate_seconds_;
  save.state["evaluated"] = evaluated_;
  save.state["data_shift"] = data_shift_;
  save.state["rewinds"] = rewinds_;
  save.state["rewound_from"] = rewound_from_;
  save.state["rewound_to"] = rewound_to_;
  save.state["nonfinite"] = nonfinite_;
  if (job_.training.spike_factor > 0) save.state["spikes"] = spikes_.to_json();
  save.state["bad_samples"] = Json::array_of(bad_files_);
  if (best_) save.state["best"] = *best_;
  if (top1_) save.state["top1"] = *top1_;
  if (loss_) save.state["loss"] = *loss_;
  if (loss_cut_) save.state["loss_cut"] = true;
  save.state["classes"] = Json::array_of(collections_.train.classes);
  save.state["identity"] = run::identity(job_, fingerprints_.train, fingerprints_.validate);
  return save;
}

void Session::copy_whole(const step::Step& step, run::Save& save) {
  save.parts.push_back(copy_.part("weights.safetensors", model::all_tensors(network_)));
  save.parts.push_back(copy_.part("optimizer.safetensors", step.state()));
  if (ema_) save.parts.push_back(copy_.part("ema.safetensors", ema_->averages()));
}

void Session::copy_pieces(const step::Step& step, run::Save& save) {
  const step::CutState cut = step.cut_state();
  auto part = node_part_->take(cut);
  if (folder_) {
    try {  // one makes it for all: they would all try at once
      options_.disk->make_folder(folder_->paths().checkpoints());
    } catch (const Error&) {  // the save itself says so
    }
  }
  group_.barrier();  // no writer is at the attempt before: rank 0 removes what that left
  const std::string token = comm::broadcast_text(group_, text(step_, "-", model::name_of_now()));
  if (!folder_) {
    if (part) saver_->start_shard(step_, token, std::move(*part));
    return;
  }
  std::set<std::string> in_pieces;
  for (const auto& whole : cut.wholes()) {
    if (whole.weight) in_pieces.insert(whole.name);
  }
  auto weights = model::all_tensors(network_);
  std::erase_if(weights, [&](const model::Named& entry) { return in_pieces.contains(entry.name); });
  save.parts.push_back(copy_.part("weights.safetensors", weights));
  save.parts.push_back(copy_.part("optimizer.safetensors", cut.shared()));
  if (ema_) save.parts.push_back(copy_.part("ema.safetensors", ema_->averages()));
  save.parts.push_back(std::move(*part));
  save.token = token;
  save.shards = node_part_->names();
  describe_cut(save.state, cut, save.shards);
  save.shards.erase(save.shards.begin());  // its own
}

std::string Session::state_sha256(const std::vector<model::Named>& optimizer) const {
  if (!folder_) return "";
  std::vector<model::Named> all = model::all_tensors(network_);
  for (const auto& entry : optimizer) all.push_back({text("optimizer.", entry.name), entry.tensor});
  if (ema_) {
    for (const auto& entry : ema_->averages()) all.push_back({text("ema.", entry.name), entry.tensor});
  }
  return model::tensors_sha256(std::move(all), data_state().to_json().dump(-1));
}

void Session::save(const step::Step& step, const Verdict& verdict) {
  if (!saver_ && !node_part_) return;
  const run::Activity::During saving(*options_.activity, run::Phase::saving);
  const double start = base::steady_seconds();
  settle(Wait::yes);
  if (folder_) folder_->ensure_held();  // not ours any more: this sitting ends
  const bool last = stopped() || step_ == timetable_.total_steps();
  run::Save save;
  if (folder_) save = describe_save(verdict.best);
  node_part_ ? copy_pieces(step, save) : copy_whole(step, save);
  if (!folder_) return;
  pending_ = {.best = verdict.best, .last = last, .stall = 0, .best_before = verdict.best_before};
  saver_->start(std::move(save));
  clock_.began(base::steady_seconds());
  pending_.stall = base::steady_seconds() - start;
  stall_seconds_ += pending_.stall;
  ledger_->stalled(step_, pending_.stall);  // the last one is waited for by finish(): the state is hashed meanwhile
}

void Session::save_durably(const step::Step& step) {
  save(step, {});
  settle(Wait::yes);
}

void Session::settle(Wait wait) {
  if (!saver_) return;
  const auto outcome = wait == Wait::yes ? saver_->wait() : saver_->outcome();
  if (!outcome || !folder_) return;  // rank 0 hears of a failed part from the row that it waits for
  if (!outcome->failure) {
    ++saves_;
    save_seconds_ = outcome->seconds;
    clock_.measured({pending_.stall, outcome->processor_seconds, outcome->seconds});
    const bool by_clock = job_.checkpoint.every_epochs <= 0;
    ledger_->saved(*outcome, pending_.stall, by_clock ? std::optional(clock_.interval()) : std::nullopt);
    if (by_clock && saves_ == 1 && !pending_.last) {
      ledger_->say(text("checkpoints: one every ", base::duration_text(clock_.interval()),
                        ", by Young's rule: a save took ", base::duration_text(save_seconds_),
                        " and held the steps up for ", base::duration_text(pending_.stall),
                        "; checkpoint.mean_time_between_failures is ",
                        base::duration_text(job_.checkpoint.mean_time_between_failures)));
    }
    if (!outcome->untidy.empty()) {
      ledger_->say(
          text("saved at step ", outcome->step, "; older checkpoints stay until the next save: ", outcome->untidy));
    }
    if (watch_) watch_->saved(save_seconds_);
    ledger_->sync();
    return;
  }
  folder_->ensure_held();
  if (pending_.best) best_ = pending_.best_before;  // what was never saved is not the best
  try {
    std::rethrow_exception(outcome->failure);
  } catch (const std::exception& thrown) {
    // A full disk must not cost the hours trained so far: there may be room again at the next save. A stop needs it.
    if (pending_.last) {
      save_the_weights_at_least();
      throw;
    }
    const Error error = ranks::rank_error(thrown);
    Json fields = Json::object();
    fields["step"] = outcome->step;
    fields["message"] = std::string(error.what());
    ledger_->note("save_failed", fields);
    ledger_->say(text("could not save at step ", outcome->step, ", training goes on: ", error.what(),
                      error.fix().empty() ? "" : text("; ", error.fix())));
  }
}

// The last checkpoint of a training that is done cannot be written: its weights are smaller, and what it was for.
// Pieces are only brought together for a save.
void Session::save_the_weights_at_least() {
  if (stopped() || node_part_) return;
  try {
    export_weights();
    ledger_->say(
        text("no room for the last checkpoint; the trained weights are in ", folder_->paths().weights().string()));
  } catch (const std::exception&) {  // the save's own error tells what is wrong
  }
}

void Session::say_budget(int64_t bytes) {
  if (!ledger_ || bytes <= told_bytes_) return;
  told_bytes_ = bytes;
  const auto& checkpoint = job_.checkpoint;
  const auto each = static_cast<double>(bytes);
  std::string which = text(checkpoint.keep, " newest, one being written");
  if (collections_.validate) which += ", the best";
  int64_t milestones = 0;
  if (checkpoint.milestone_epochs > 0) {
    milestones = timetable_.total_steps() / timetable_.steps_of(checkpoint.milestone_epochs);
    which += text(", ", milestones, " milestones");
  }
  const int64_t count = run::most_checkpoints(checkpoint.keep, collections_.validate.has_value(), milestones);
  const double all = each * static_cast<double>(count);
  const auto free = static_cast<double>(options_.disk->free_bytes(folder_->paths().root));
  ledger_->say(text("checkpoints: ", base::format_bytes(each), " each, up to ", count, " at once (", which,
                    "): ", base::format_bytes(all), " of ", base::format_bytes(free), " free",
                    checkpoint.every_epochs > 0 ? "" : "; how often: by Young's rule",
                    all <= free ? ""
                    : milestones > checkpoint.keep
                        ? "; NOT ENOUGH: free some space, or raise checkpoint.milestone_epochs"
                        : "; NOT ENOUGH: free some space, or lower checkpoint.keep"));
}

// Before the first step: a sitting that cannot save one step would be repeated for ever. After a restart late in a job
// the next job has its whole time.
std::string Session::check_walltime() const {
  if (!options_.seconds_left || step_ == timetable_.total_steps()) return "";
  const double elapsed = base::steady_seconds() - started_;
  const double needed = elapsed + forecast::least_of({.save = save_seconds_, .step = step_seconds_});
  if (needed <= *options_.seconds_left) return "";
  if (options_.restarted) {
    ledger_->say("too little time is left for another step");
    return "walltime";
  }
  const double given = std::max(0.0, *options_.seconds_left + options_.seconds_passed);
  throw Error(Blame::user,
              text("the walltime is too short: ", base::duration_text(given), " from the start of lockstep, ",
                   base::duration_text(elapsed + options_.seconds_passed), " have passed; one step and saving it need ",
                   base::duration_text(needed - elapsed)),
              "ask the scheduler for more time, or raise limits.walltime");
}

}  // namespace lockstep::training
