// SPDX-License-Identifier: Apache-2.0
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include <cerrno>

#include "lockstep/base/embedded.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/model/weights.h"
#include "lockstep/site/processor.h"
#include "lockstep/step/schedule.h"
#include "lockstep/verbs/train/batch_rules.h"
#include "lockstep/verbs/train/session.h"
#include "lockstep/verbs/train/snapshot.h"
#include "lockstep/version.h"

namespace lockstep::verbs {

using base::Json;
using base::text;

namespace {

// The result of a run that was finished and now goes on: eval and predict must not take it for the new one.
void set_aside_old_result(const run::RunPaths& paths) {
  if (!std::filesystem::exists(paths.weights())) return;
  std::error_code error;
  std::filesystem::rename(paths.weights(), paths.previous_weights(), error);
  if (!error) return;
  errno = error.value();
  base::throw_errno(text("cannot rename ", paths.weights().string()));
}

}  // namespace

void Session::resume() {
  if (ledger_ && options_.plan) watch_ = std::make_unique<PlanWatch>(job_, options_, group_.size(), *ledger_);
  std::string found;
  if (folder_) {
    const auto newest = run::CheckpointStore(folder_->paths().checkpoints()).newest();
    for (const auto& line : newest.passed_over) ledger_->say(text("passed over a damaged checkpoint: ", line));
    if (newest.checkpoint) found = newest.checkpoint->folder.string();
  }
  checkpoint_ = comm::broadcast_text(group_, found);
  if (checkpoint_.empty()) {
    if (!job_.model.weights.empty()) {
      const auto report = model::load_weights(network_, job_.model.weights);
      if (ledger_ && !report.fresh.empty()) {
        ledger_->say(text("weights: ", report.loaded.size(), " tensors from ", job_.model.weights, "; made anew for ",
                          job_.model.classes, " classes: ", base::join(report.fresh, ", ")));
      }
    }
  } else {
    const Json state = base::read_json(base::Path(checkpoint_) / "state.json", {.max_bytes = size_t{64} << 20});
    check_identity(state.at("identity"), identity(job_, data_sha256_), checkpoint_);
    restore_tensors(base::Path(checkpoint_) / "weights.safetensors", all_tensors(network_));
    step_ = resumed_at_ = state.at("step").as_int();
    options_.activity->step_done(step_);
    seconds_before_ = state.double_or("seconds", 0);
    if (const Json* files = state.find("bad_samples"); files && files->is_array()) {
      for (const auto& file : files->items()) bad_files_.insert(file.as_string());
    }
    if (state.contains("best")) best_ = state.at("best").as_double();
    if (state.contains("top1")) top1_ = state.at("top1").as_double();
    if (state.contains("loss")) loss_ = state.at("loss").as_double();
  }
  if (job_.training.ema_decay > 0) {
    ema_ = std::make_unique<step::Ema>(job_.training.ema_decay, network_);
    if (!checkpoint_.empty()) restore_tensors(base::Path(checkpoint_) / "ema.safetensors", ema_->averages());
  }
  if (!folder_) return;
  base::write_json(folder_->paths().job(), spec::to_json(job_));
  if (options_.plan) base::write_file(folder_->paths().plan(), base::read_file(*options_.plan));
  if (step_ < timetable_.total_steps()) set_aside_old_result(folder_->paths());
  ledger_->begin(checkpoint_.empty() ? "start" : "resume", start_fields());
  for (const auto& line : batch_rule_lines(job_.training, group_.size())) ledger_->say(line);
  if (!checkpoint_.empty()) ledger_->say(text("going on after step ", step_, " of ", timetable_.total_steps()));
}

Json Session::start_fields() const {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  Json fields = Json::object();
  fields["name"] = job_.name;
  fields["task"] = name_of(job_.task);
  fields["model"] = job_.model.name;
  fields["parameters"] = network_.parameter_count();
  fields["classes"] = job_.model.classes;
  fields["class_names"] = Json::array_of(collections_.train.classes);
  fields["train_samples"] = collections_.train.samples.size();
  fields["validate_samples"] = collections_.validate ? collections_.validate->samples.size() : 0;
  fields["global_batch"] = job_.training.global_batch;
  fields["peak_lr"] = step::peak_rate(job_.training);
  fields["batch_norm"] = name_of(job_.training.batch_norm);
  fields["reduce_precision"] = name_of(job_.training.reduce_precision);
  fields["total_steps"] = timetable_.total_steps();
  fields["steps_per_epoch"] = timetable_.steps_per_epoch();
  fields["ranks"] = group_.size();
  fields["threads"] = at::get_num_threads();
  if (job_.training.virtual_ranks > 0) {
    fields["virtual_ranks"] = job_.training.virtual_ranks;
    fields["threads_per_slice"] = job_.training.threads_per_slice;
  }
  fields["device"] = options_.device.is_cuda() ? "cuda" : "cpu";
  fields["precision"] = name_of(job_.training.precision);
  fields["seed"] = job_.training.seed;
  fields["host"] = std::string(host);
  fields["version"] = LOCKSTEP_VERSION;
  fields["commit"] = base::build_commit();
  fields["libtorch"] = TORCH_VERSION;
  fields["cpu"] = site::read_processor().model;
  fields["job_sha256"] = base::sha256_hex(spec::to_json(job_).dump());
  fields["data_sha256"] = data_sha256_;
  if (!checkpoint_.empty()) {
    fields["step"] = step_;
    fields["checkpoint"] = base::Path(checkpoint_).filename().string();
  }
  return fields;
}

}  // namespace lockstep::verbs
