// SPDX-License-Identifier: Apache-2.0
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include <cerrno>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/batch_rules.h"
#include "lockstep/run/identity.h"
#include "lockstep/run/schedule.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/processor.h"
#include "lockstep/training/agreement.h"
#include "lockstep/training/session.h"
#include "lockstep/training/sync_check.h"
#include "lockstep/version.h"

namespace lockstep::training {

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

// A folder keeps the history of one job: another one must not write into it, even before there is a checkpoint.
void check_owner(const run::RunPaths& paths, const std::string& name) {
  if (!std::filesystem::exists(paths.job())) return;
  const std::string owner = base::read_json(paths.job()).string_or("name", name);
  if (owner == name) return;
  throw base::Error(base::Blame::user,
                    text(paths.root.string(), " is the run folder of the job '", owner, "', not of '", name, "'"),
                    text("choose another folder: --run runs/", name));
}

Json read_state(const base::Path& checkpoint) {
  return base::read_json(checkpoint / "state.json", {.max_bytes = size_t{64} << 20});
}

}  // namespace

void Session::resume() {
  if (ledger_ && options_.plan) watch_ = std::make_unique<PlanWatch>(job_, options_, group_.size(), *ledger_);
  std::string found;
  if (folder_) {
    check_owner(folder_->paths(), job_.name);
    const auto newest = run::CheckpointStore(folder_->paths().checkpoints(), options_.disk).newest();
    for (const auto& line : newest.passed_over) ledger_->say(text("passed over a damaged checkpoint: ", line));
    if (newest.checkpoint) found = newest.checkpoint->folder.string();
    if (found.empty() && !newest.passed_over.empty()) {
      throw base::Error(base::Blame::machine,
                        text(folder_->paths().checkpoints().string(), ": every checkpoint is damaged"),
                        text("bring one back from a backup; or begin anew, knowingly: rm -r ",
                             folder_->paths().checkpoints().string()));
    }
  }
  checkpoint_ = comm::broadcast_text(group_, found);
  Json first = Json::object();  // one order for all, should nodes see the shards through different file systems
  first["data.order"] = comm::broadcast_text(group_, name_of(job_.data.order));
  if (keeps_order_) job_.data.order = run::order_of(first);
  if (checkpoint_.empty()) {
    if (!job_.model.weights.empty()) {
      const auto report = model::load_weights_from(network_, job_.model.weights);
      if (ledger_ && !report.fresh.empty()) {
        ledger_->say(text("weights: ", report.loaded.size(), " tensors from ", job_.model.weights, "; made anew for ",
                          job_.model.classes, " classes: ", base::join(report.fresh, ", ")));
      }
    }
    check_start();
  } else {
    restore(checkpoint_);
    resumed_at_ = step_;
    const Json state = read_state(checkpoint_);
    seconds_before_ = state.double_or("seconds", 0);
    step_seconds_ = state.double_or("step_seconds", 0);
    save_seconds_ = state.double_or("save_seconds", save_seconds_);
    evaluate_seconds_ = state.double_or("evaluate_seconds", 0);
    data_shift_ = state.int_or("data_shift", 0);
    rewinds_ = state.int_or("rewinds", 0);
    rewound_from_ = state.int_or("rewound_from", 0);
    rewound_to_ = state.int_or("rewound_to", 0);
    nonfinite_ = state.int_or("nonfinite", 0);
    if (const Json* seen = state.find("spikes")) spikes_.load(*seen);
  }
  if (job_.training.ema_decay > 0) {
    ema_ = std::make_unique<step::Ema>(job_.training.ema_decay, network_);
    if (!checkpoint_.empty()) model::restore_tensors(checkpoint_, "ema", ema_->averages());
  }
  if (history_) history_->begin(comm::broadcast_text(group_, model::name_of_now()), step_);
  if (!folder_) {
    stop_reason_ = comm::broadcast_text(group_, "");
    return stage_shards();
  }
  base::write_json(folder_->paths().job(), spec::to_json(job_));
  if (options_.plan) base::write_file(folder_->paths().plan(), base::read_file(*options_.plan));
  if (step_ < timetable_.total_steps()) set_aside_old_result(folder_->paths());
  ledger_->begin(checkpoint_.empty() ? "start" : "resume", start_fields());
  for (const auto& line : run::batch_rule_lines(job_.training, group_.size())) ledger_->say(line);
  if (!checkpoint_.empty()) ledger_->say(text("going on after step ", step_, " of ", timetable_.total_steps()));
  stop_reason_ = comm::broadcast_text(group_, check_walltime());
  stage_shards();
}

void Session::check_start() {
  if (group_.size() == 1) return;
  const at::Tensor sums = fingerprints(model::all_tensors(network_));
  Json terms = Json::object();
  terms["weights (the values to begin with)"] =
      base::sha256_hex({static_cast<const std::byte*>(sums.const_data_ptr()), sums.nbytes()});
  check_terms(terms, node_of(options_), group_);
}

void Session::restore(const base::Path& folder) {
  const Json state = read_state(folder);
  // Left to the storage: what the run began with counts, wherever its shards lie by now.
  if (keeps_order_) job_.data.order = run::order_of(state.at("identity"));
  run::check_identity(state.at("identity"), run::identity(job_, fingerprints_.train, fingerprints_.validate),
                      folder.string());
  model::restore_tensors(folder, "weights", model::all_tensors(network_));
  if (ema_) model::restore_tensors(folder, "ema", ema_->averages());
  checkpoint_ = folder.string();
  step_ = state.at("step").as_int();
  evaluated_ = state.int_or("evaluated", step_);  // earlier versions never made up for one
  options_.activity->step_done(step_);
  if (const Json* files = state.find("bad_samples"); files && files->is_array()) {
    for (const auto& file : files->items()) bad_files_.insert(file.as_string());
  }
  const auto value = [&](const char* key) {
    return state.contains(key) ? std::optional(state.at(key).as_double()) : std::nullopt;
  };
  best_ = value("best");
  top1_ = value("top1");
  loss_ = value("loss");
  loss_cut_ = state.contains("loss_cut");
}

Json Session::start_fields() const {
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
  fields["peak_lr"] = run::peak_rate(job_.training);
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
  fields["host"] = site::host_name();
  fields["version"] = LOCKSTEP_VERSION;
  fields["commit"] = base::build_commit();
  fields["libtorch"] = TORCH_VERSION;
  fields["cpu"] = site::read_processor().model;
  fields["job_sha256"] = base::sha256_hex(spec::to_json(job_).dump());
  fields["data_sha256"] = fingerprints_.train;
  if (!checkpoint_.empty()) {
    fields["step"] = step_;
    fields["checkpoint"] = base::Path(checkpoint_).filename().string();
  }
  return fields;
}

}  // namespace lockstep::training
