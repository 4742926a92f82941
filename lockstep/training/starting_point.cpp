// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/starting_point.h"

#include <torch/headeronly/version.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/data_lines.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/balanced_order.h"
#include "lockstep/run/batch_rules.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/identity.h"
#include "lockstep/run/job_changes.h"
#include "lockstep/run/saved_position.h"
#include "lockstep/run/schedule.h"
#include "lockstep/run/threads.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/processor.h"
#include "lockstep/training/agreed_threads.h"
#include "lockstep/training/agreement.h"
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
                    text("choose another folder: --run ", base::shell_word("runs/" + name)));
}

std::string newest_checkpoint(TrainingContext& context) {
  const run::RunPaths& paths = context.folder->paths();
  check_owner(paths, context.job.name);
  const auto newest = run::CheckpointStore(paths.checkpoints(), context.options.disk).newest();
  for (const auto& line : newest.passed_over) context.ledger->say(text("passed over a damaged checkpoint: ", line));
  if (newest.checkpoint) return newest.checkpoint->folder.string();
  if (newest.passed_over.empty()) return "";
  throw base::Error(
      base::Blame::machine, text(paths.checkpoints().string(), ": every checkpoint is damaged"),
      text("bring one back from a backup; or start over: rm -r ", base::shell_path(paths.checkpoints().string())));
}

// One order for all, should nodes see the shards through different file systems.
void agree_on_order(TrainingContext& context) {
  Json first = Json::object();
  first["data.order"] = comm::broadcast_text(context.group, name_of(context.job.data.order));
  if (context.keeps_order) context.job.data.order = run::order_of(first);
}

void load_given_weights(TrainingContext& context) {
  const auto& model = context.job.model;
  if (model.weights.empty()) return;
  const auto report = model::load_weights_from(context.network, model.weights);
  if (!context.ledger || report.fresh.empty()) return;
  context.ledger->say(text("weights: ", report.loaded.size(), " tensors from ", model.weights, "; made new for ",
                           model.classes, " classes: ", base::join(report.fresh, ", ")));
}

void check_same_weights(const TrainingContext& context) {
  if (context.group.size() == 1) return;
  const at::Tensor sums = fingerprints(model::all_tensors(context.network));
  Json terms = Json::object();
  terms["weights (the values to begin with)"] =
      base::sha256_hex({static_cast<const std::byte*>(sums.const_data_ptr()), sums.nbytes()});
  check_terms(terms, node_of(context.options), context.group);
}

// A resume keeps what the run began with, whatever else the machine does by now: another number of threads is another
// order of additions. Not on other ranks, which give other bits anyway, nor where the cores are too few for it.
void keep_threads(TrainingContext& context, int64_t chosen) {
  const TrainingState& state = context.state;
  const int64_t begun = state.threads,
                share = agree_on_threads(run::compute_threads(context.job.training), context.group);
  const bool keeps = context.job.training.threads == 0 && state.ranks == context.group.size() && begun <= share;
  use_threads(context, keeps ? begun : chosen);
  if (!context.ledger || begun == chosen) return;
  context.options.threads.why =
      keeps ? text("computing with ", begun, begun == 1 ? " thread" : " threads", ", as the run began")
            : text("computing with ", chosen, chosen == 1 ? " thread" : " threads", ", where the run had ", begun,
                   ": the last digits may come out differently");
}

Json start_fields(const TrainingContext& context) {
  const spec::Job& job = context.job;
  const loader::Collections& collections = context.collections;
  Json fields = Json::object();
  fields["name"] = job.name;
  fields["task"] = name_of(job.task);
  fields["report"] = context.task->report_words();
  fields["model"] = job.model.name;
  fields["parameters"] = context.network.parameter_count();
  fields["classes"] = job.model.classes;
  fields["class_names"] = Json::array_of(collections.train.classes);
  fields["train_samples"] = collections.train.samples.size();
  fields["validate_samples"] = collections.validate ? collections.validate->samples.size() : 0;
  fields["global_batch"] = job.training.global_batch;
  fields["peak_lr"] = run::peak_rate(job.training);
  fields["batch_norm"] = name_of(job.training.batch_norm);
  fields["reduce_precision"] = name_of(job.training.reduce_precision);
  fields["total_steps"] = context.timetable.total_steps();
  fields["steps_per_epoch"] = context.timetable.steps_per_epoch();
  fields["ranks"] = context.group.size();
  fields["threads"] = at::get_num_threads();
  fields["cores"] = site::cores_per_rank();
  if (job.training.virtual_ranks > 0) {
    fields["virtual_ranks"] = job.training.virtual_ranks;
    fields["threads_per_slice"] = job.training.threads_per_slice;
  }
  fields["device"] = context.options.device.is_cuda() ? "cuda" : "cpu";
  fields["precision"] = name_of(job.training.precision);
  fields["seed"] = job.training.seed;
  fields["host"] = site::host_name();
  fields["version"] = LOCKSTEP_VERSION;
  fields["commit"] = base::build_commit();
  fields["libtorch"] = TORCH_VERSION;
  fields["cpu"] = site::read_processor().model;
  fields["job_sha256"] = base::sha256_hex(spec::to_json(job).dump());
  fields["data_sha256"] = context.fingerprints.train;
  if (!context.checkpoint.empty()) {
    fields["step"] = context.state.step;
    fields["checkpoint"] = base::Path(context.checkpoint).filename().string();
  }
  return fields;
}

// Without a checkpoint nothing is kept of what was trained: then a job may be whatever it is.
std::vector<run::JobChange> changes_since(const TrainingContext& context) {
  const base::Path before = context.folder->paths().job();
  if (context.checkpoint.empty() || !base::is_there(before)) return {};
  return run::job_changes(base::read_json(before), spec::to_json(context.job));
}

void say_changes(const TrainingContext& context, const std::vector<run::JobChange>& changes) {
  const int64_t step = context.state.step, total = context.timetable.total_steps();
  bool length = false;
  for (const auto& change : changes) {
    context.ledger->say(change.text());
    length = length || change.kind == run::ChangeKind::length;
  }
  if (step == total && !changes.empty()) {
    context.ledger->say("nothing is left to train: these changes have no effect, job.json stays as it was");
  } else if (length) {
    context.ledger->say(text("the learning rate follows the schedule of ", total,
                             " steps from here on: ", context.timetable.learning_rate(step), " for the next step"));
  }
}

// Of the rarest class and the commonest.
std::string balance_line(const TrainingContext& context) {
  const loader::Collection& train = context.collections.train;
  const auto order = loader::balanced_order(train, context.job.data.balance, context.job.training.seed);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < train.classes.size(); ++i) {
    if (order.count(static_cast<int32_t>(i)) > 0) labels.push_back(static_cast<int32_t>(i));
  }
  const auto [rare, common] = std::minmax_element(
      labels.begin(), labels.end(), [&](int32_t a, int32_t b) { return order.count(a) < order.count(b); });
  const auto drawn = [&](int32_t label) {
    return text(order.quota(label), " times from '", train.classes[static_cast<size_t>(label)], "' (",
                order.count(label), order.count(label) == 1 ? " sample)" : " samples)");
  };
  return text("data.balance: an epoch draws ", drawn(*rare), ", ", drawn(*common));
}

void say_newer_files(const TrainingContext& context) {
  std::error_code gone;
  const auto saved = std::filesystem::last_write_time(base::Path(context.checkpoint) / "state.json", gone);
  if (gone) return;
  const auto say = [&](const loader::Collection& collection, const char* kind, const char* what_then) {
    const auto newer = loader::files_newer_than(collection, saved);
    if (newer.empty()) return;
    context.ledger->say(text(newer.size(), " ", kind, newer.size() == 1 ? " image was" : " images were",
                             " written after this checkpoint, the first: ", newer.front(),
                             "; if they were not only copied, ", what_then));
  };
  const loader::Collections& all = context.collections;
  say(all.train, "training", "the run goes on with other data than it began with");
  if (all.validate) say(*all.validate, "validation", "its scores are of other data than those before");
}

}  // namespace

std::string find_checkpoint(TrainingContext& context) {
  return comm::broadcast_text(context.group, context.folder ? newest_checkpoint(context) : "");
}

void go_to_start(TrainingContext& context, const std::string& checkpoint) {
  agree_on_order(context);
  if (checkpoint.empty()) {
    load_given_weights(context);
    check_same_weights(context);
  }
  const double decay = context.job.training.ema_decay;
  if (decay > 0) context.ema = std::make_unique<step::Ema>(decay, context.network);
  if (checkpoint.empty()) return;
  const int64_t chosen = context.state.threads;
  restore(context, checkpoint, Restore::resume);
  keep_threads(context, chosen);
}

void restore(TrainingContext& context, const base::Path& checkpoint, Restore how) {
  const Json saved = base::read_json(checkpoint / "state.json", {.max_bytes = size_t{64} << 20});
  // Left to the storage: what the run began with counts, wherever its shards lie by now.
  if (context.keeps_order) context.job.data.order = run::order_of(saved.at("identity"));
  run::check_identity(saved.at("identity"),
                      run::identity(context.job, context.fingerprints.train, context.fingerprints.validate),
                      checkpoint.string());
  run::check_saved_position(saved, context.timetable, checkpoint.string());
  model::restore_tensors(checkpoint, "weights", model::all_tensors(context.network));
  if (context.ema) model::restore_tensors(checkpoint, "ema", context.ema->averages());
  context.checkpoint = checkpoint.string();
  how == Restore::resume ? context.state.resume(saved) : context.state.rewind(saved);
  context.options.activity->step_done(context.state.step);
}

void write_start(TrainingContext& context) {
  if (!context.folder) return;
  const run::RunPaths& paths = context.folder->paths();
  const int64_t step = context.state.step, total = context.timetable.total_steps();
  const std::vector<run::JobChange> changes = changes_since(context);
  if (!context.options.accept_changes) run::refuse_changes(changes, paths.root.string(), step);
  // job.json says what the weights were trained with: a session that trains nothing leaves it alone.
  if (!context.is_done() || !base::is_there(paths.job())) base::write_json(paths.job(), spec::to_json(context.job));
  if (context.options.plan) base::write_file(paths.plan(), base::read_file(*context.options.plan));
  if (!context.is_done()) set_aside_old_result(paths);
  const bool resumes = !context.checkpoint.empty();
  Json fields = start_fields(context);
  for (const auto& change : changes) fields["changes"].push_back(change.to_json());
  context.ledger->begin(resumes ? "resume" : "start", fields);
  if (!context.options.threads.why.empty()) context.ledger->say(context.options.threads.why);
  say_changes(context, changes);
  for (const auto& line : run::batch_rule_lines(context.job.training, context.group.size())) context.ledger->say(line);
  if (!resumes) {
    for (const auto& line : loader::data_lines(context.collections, context.task->object_slots()))
      context.ledger->say(line);
    if (context.job.data.balance > 0) context.ledger->say(balance_line(context));
    return;
  }
  context.ledger->say(text("going on after step ", step, " of ", total));
  say_newer_files(context);
}

}  // namespace lockstep::training
