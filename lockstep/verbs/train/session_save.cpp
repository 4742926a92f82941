// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/verbs/train/session.h"
#include "lockstep/verbs/train/snapshot.h"

namespace lockstep::verbs {

using base::Error;
using base::Json;
using base::text;
using step::steady_seconds;

std::string Session::state_sha256(const step::Step& step) const {
  const auto optimizer = step.state();
  if (!folder_) return "";
  std::vector<model::Named> all = all_tensors(network_);
  for (const auto& entry : optimizer) all.push_back({text("optimizer.", entry.name), entry.tensor});
  if (ema_) {
    for (const auto& entry : ema_->averages()) all.push_back({text("ema.", entry.name), entry.tensor});
  }
  return tensors_sha256(std::move(all), timetable_.loader_state(step_).to_json().dump(-1));
}

bool Session::save(step::Step& step, bool best) {
  if (!folder_) return true;
  const run::Activity::During saving(*options_.activity, run::Phase::saving);
  folder_->ensure_held();  // not ours any more: this sitting ends
  const double start = steady_seconds();
  run::Save save;
  save.step = step_;
  save.keep = job_.checkpoint.keep;
  save.best = best;
  save.state = Json::object();
  save.state["epoch"] = timetable_.epoch_at(step_);
  save.state["loader"] = timetable_.loader_state(step_).to_json();
  save.state["seconds"] = seconds();
  save.state["bad_samples"] = Json::array_of(bad_files_);
  if (best_) save.state["best"] = *best_;
  if (top1_) save.state["top1"] = *top1_;
  if (loss_) save.state["loss"] = *loss_;
  save.state["classes"] = Json::array_of(collections_.train.classes);
  save.state["identity"] = identity(job_, data_sha256_);
  save.parts.push_back(tensors_part("weights.safetensors", all_tensors(network_)));
  save.parts.push_back(tensors_part("optimizer.safetensors", step.state()));
  if (ema_) save.parts.push_back(tensors_part("ema.safetensors", ema_->averages()));
  int64_t bytes = 0;
  for (const auto& part : save.parts) bytes += part.bytes;
  try {
    const auto folder = run::CheckpointStore(folder_->paths().checkpoints()).save(save);
    save_seconds_ = steady_seconds() - start;
    ledger_->saved(step_, folder, bytes, save_seconds_, best);
    if (watch_) watch_->saved(save_seconds_);
    ledger_->sync();
    return true;
  } catch (const Error& error) {
    // A full disk must not cost the hours trained so far: there may be room again at the next save. A stop needs it.
    if (stopped() || step_ == timetable_.total_steps()) throw;
    Json fields = Json::object();
    fields["step"] = step_;
    fields["message"] = std::string(error.what());
    ledger_->note("save_failed", fields);
    ledger_->say(text("could not save at step ", step_, ", training goes on: ", error.what(),
                      error.fix().empty() ? "" : text("; ", error.fix())));
    return false;
  }
}

}  // namespace lockstep::verbs
