// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/session.h"

#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/model/weights.h"
#include "lockstep/site/processor.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/verbs/train/snapshot.h"
#include "lockstep/verbs/train/threads.h"
#include "lockstep/version.h"

namespace lockstep::verbs {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using step::steady_seconds;

struct Session::Source {
  std::unique_ptr<data::Loader> loader;   // images, or
  std::optional<Features> train;          // cached features of the frozen blocks
  std::optional<Features> validate;       // likewise
  data::Batch batch;                      // keeps the memory of the samples in use
  data::StageSeconds stages_before = {};  // at the beginning of the epoch, or of this sitting in it
  double seconds = 0;                     // of the steps since then
  double waited = 0;                      // of these, for batches
};

Collections open_collections(const spec::Job& job) {
  Collections all;
  const bool synthetic = job.data.train == "synthetic";
  if (synthetic && (job.data.samples <= 0 || job.model.classes <= 1)) {
    throw Error(Blame::user, "data.train is \"synthetic\" without data.samples or model.classes",
                "for example --set data.samples=1000 --set model.classes=10");
  }
  all.train =
      synthetic ? data::synthetic_collection(job.data.samples, job.model.classes) : data::scan_folder(job.data.train);
  if (const auto there = static_cast<int64_t>(all.train.samples.size());
      job.data.samples > 0 && job.data.samples != there) {
    throw Error(Blame::user, text("data.samples is ", job.data.samples, ", but ", job.data.train, " has ", there),
                text("leave data.samples out, or --set data.samples=", there));
  }
  const auto found = static_cast<int64_t>(all.train.classes.size());
  if (found < 2) {
    throw Error(Blame::user, text(job.data.train, " has one class only: '", all.train.classes.at(0), "'"),
                "a classifier needs two or more: one sub-folder for each");
  }
  if (job.model.classes != 0 && job.model.classes != found) {
    throw Error(Blame::user, text("model.classes is ", job.model.classes, ", but ", job.data.train, " has ", found),
                text("leave model.classes out, or --set model.classes=", found));
  }
  if (job.data.validate == "synthetic") {
    all.validate = data::synthetic_collection(job.data.samples, job.model.classes);
  } else if (!job.data.validate.empty()) {
    all.validate = data::scan_folder(job.data.validate, all.train.classes);
  }
  return all;
}

spec::Job resolve(spec::Job job, const Collections& collections) {
  job.model.classes = static_cast<int64_t>(collections.train.classes.size());
  return job;
}

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

std::unique_ptr<run::RunFolder> hold(const TrainOptions& options, const comm::Group& group) {
  return group.rank() == 0 ? std::make_unique<run::RunFolder>(options.run) : nullptr;
}

}  // namespace

Session::Session(const spec::Job& job, const TrainOptions& options, comm::Group& group)
    : started_(steady_seconds()),
      options_(options),
      group_(group),
      folder_(hold(options, group)),
      collections_(open_collections(job)),
      job_(resolve(job, collections_)),
      timetable_(job_.training, static_cast<int64_t>(collections_.train.samples.size())),
      network_(model::make_network(job_.model, job_.data.image_size, job_.training.seed, options.device)),
      data_sha256_(collections_.train.fingerprint()) {
  at::set_num_threads(static_cast<int>(agree_on_threads(compute_threads(job_.training), group)));
  if (folder_) ledger_ = std::make_unique<Ledger>(folder_->paths(), timetable_, options.voice);
}

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
  fields["total_steps"] = timetable_.total_steps();
  fields["steps_per_epoch"] = timetable_.steps_per_epoch();
  fields["ranks"] = group_.size();
  fields["threads"] = at::get_num_threads();
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

std::unique_ptr<data::Loader> Session::loader(const data::Collection& collection, data::Use use) const {
  const bool train = use == data::Use::train;
  const int64_t evaluation = job_.evaluation.batch > 0 ? job_.evaluation.batch * group_.size() : 0;
  data::LoaderOptions options;
  options.data = job_.data;
  options.use = use;
  options.global_batch = train || evaluation == 0 ? job_.training.global_batch : evaluation;
  options.seed = job_.training.seed;
  options.rank = group_.rank();
  options.num_ranks = group_.size();
  options.threads = job_.data.threads > 0 ? job_.data.threads : compute_threads(job_.training);
  options.augment = train;
  return data::make_loader(collection, options,
                           train ? timetable_.loader_state(step_) : data::LoaderState{.seed = job_.training.seed});
}

std::optional<Features> Session::features(const data::Collection& collection, size_t to, const char* what) {
  const auto count = static_cast<int64_t>(collection.samples.size());
  const auto reader = loader(collection, data::Use::evaluate);
  FeatureRequest request{.to = to, .precision = job_.training.precision, .device = options_.device};
  if (ledger_) {
    request.seen = [&](int64_t seen) {
      ledger_->show(text("features of the frozen blocks, ", what, ": ", seen * group_.size(), "/", count));
    };
  }
  std::string why;
  request.stop = [&] {
    why = why_stop(/*evaluates=*/false);
    return !why.empty();
  };
  const double start = steady_seconds();
  std::optional<Features> result = compute_features(network_, *reader, count, group_, request);
  if (!result) {
    stop_reason_ = why.empty() ? "a stop on another rank" : why;
    return result;
  }
  report_bad_samples(reader.get());
  if (ledger_) {
    const double took = steady_seconds() - start;
    ledger_->features(step_, count, took);
    ledger_->say(text("cached features of ", count, " ", what,
                      " samples: ", base::format_bytes(static_cast<double>(result->values.nbytes())), " in ",
                      base::duration_text(took)));
  }
  return result;
}

Session::Source Session::open_source(const Stage& stage, size_t from) {
  Source source;
  if (!stage.phase.cache_features) {
    source.loader = loader(collections_.train, data::Use::train);
    return source;
  }
  source.train = features(collections_.train, from, "training");
  if (collections_.validate && !stopped()) source.validate = features(*collections_.validate, from, "validation");
  return source;
}

void Session::run(const Stage& stage) {
  const size_t from = stage.phase.train_from.empty() ? 0 : network_.index_of(stage.phase.train_from);
  if (ledger_ && from > 0) {
    ledger_->say(text("phase: training from block '", stage.phase.train_from, "' on, ", from, " blocks frozen, steps ",
                      stage.begin + 1, " to ", stage.end));
  }
  step::Step step(network_, group_,
                  {.training = job_.training,
                   .device = options_.device,
                   .train_from = from,
                   .freeze_norm = stage.phase.freeze_norm,
                   .ema = ema_.get()});
  if (step_ > stage.begin) {
    step.load_state(read_tensors(base::Path(checkpoint_) / "optimizer.safetensors"));
  }
  Source source = open_source(stage, from);
  // A stop while features were computed: what the phase before has trained is not to be lost.
  if (stopped() && step_ > resumed_at_) save(step, /*best=*/false);
  if (ledger_) ledger_->phase(stage);
  while (step_ < stage.end && !stopped()) take_step(step, source);
  report_bad_samples(source.loader.get());
}

void Session::take_step(step::Step& step, Source& source) {
  if (watch_) watch_->before_step(timetable_.ends_epoch(step_));
  const double start = steady_seconds();
  step::Samples samples;
  double waited = 0;
  if (source.train) {
    samples =
        feature_batch(*source.train, job_.training, timetable_.loader_state(step_), step_, group_, options_.device);
  } else {
    source.loader->recycle(std::move(source.batch));
    source.batch = source.loader->next();
    waited = source.batch.wait_seconds;
    samples = step::to_samples(source.batch, options_.device);
    samples.step = step_;
  }
  const double lr = timetable_.learning_rate(step_);
  const bool evaluates = collections_.validate && timetable_.due(step_ + 1, job_.evaluation.every_epochs);
  const std::string why = why_stop(evaluates);
  const step::StepResult result = step.run(samples, lr, !why.empty());
  ++step_;
  const double seconds = steady_seconds() - start;
  step_seconds_ = std::max(0.9 * step_seconds_, seconds);
  source.seconds += seconds;
  source.waited += waited;
  if (ledger_) ledger_->step(step_, result, lr, waited, seconds);
  if (watch_) {
    watch_->step(step_, {seconds, waited, result.compute_seconds, result.communicate_seconds, result.samples});
  }
  check_finite(result);
  if (result.stop && step_ < timetable_.total_steps()) stop_reason_ = why.empty() ? "a stop on another rank" : why;
  after_step(step, source, stopped());
}

// Stop when the clock leaves time for saving twice and little more: one save may be slow, and a late one is lost.
std::string Session::why_stop(bool evaluates) const {
  std::string why = options_.stop();
  if (!why.empty() || !options_.seconds_left) return why;
  const double margin = std::min(60.0, 0.05 * *options_.seconds_left);
  const double needed = 2 * save_seconds_ + 2 * step_seconds_ + (evaluates ? 1.5 * evaluate_seconds_ : 0) + margin;
  return steady_seconds() - started_ + needed > *options_.seconds_left ? "walltime" : "";
}

// A pass without backward is shorter than training on as many samples; three times that is taken for the worst.
bool Session::evaluation_may_be_cut() const {
  if (!options_.seconds_left || evaluate_seconds_ > 0) return false;
  const auto samples = static_cast<double>(collections_.validate->samples.size());
  const double guess = 3 * step_seconds_ * std::ceil(samples / static_cast<double>(job_.training.global_batch));
  return steady_seconds() - started_ + guess + 2 * save_seconds_ > *options_.seconds_left;
}

void Session::check_finite(const step::StepResult& result) {
  nonfinite_ = result.finite ? 0 : nonfinite_ + 1;
  if (result.skipped && ledger_) {  // how amp finds its loss scale: no fault
    Json fields = Json::object();
    fields["step"] = step_;
    ledger_->note("loss_scale_halved", fields);
  }
  if (result.finite) return;
  if (ledger_) {
    Json fields = Json::object();
    fields["step"] = step_;
    ledger_->note("nonfinite", fields);
    ledger_->say(text("step ", step_, ": loss or gradient is not finite; the step was left out"));
  }
  if (nonfinite_ < job_.training.max_nonfinite_steps) return;
  throw Error(Blame::user,
              text("no finite loss in ", nonfinite_, " steps in a row (training.max_nonfinite_steps), up to step ",
                   step_, ", at learning rate ", timetable_.learning_rate(step_ - 1)),
              "lower training.optimizer.lr, lengthen training.schedule.warmup_epochs, or set training.clip_norm=1; "
              "the last checkpoint is good: the same command goes on from it");
}

void Session::after_step(step::Step& step, Source& source, bool stop) {
  const auto best_before = best_;
  const bool evaluates = !stop && collections_.validate && timetable_.due(step_, job_.evaluation.every_epochs);
  const bool saves = stop || timetable_.due(step_, job_.checkpoint.every_epochs);
  if (evaluates && evaluation_may_be_cut()) save(step, /*best=*/false);
  const bool best = evaluates && evaluate(source);
  if (saves || evaluates || timetable_.ends_epoch(step_)) report_bad_samples(source.loader.get());
  if (saves || best) {
    if (!save(step, best)) best_ = best_before;  // what was never saved is not the best
  }
  if (ledger_ && timetable_.ends_epoch(step_)) {
    ledger_->end_epoch(step_);
    say_pace(source);
  }
  if (watch_ && timetable_.ends_epoch(step_)) watch_->end_epoch();
}

void Session::say_pace(Source& source) {
  if (!source.loader) return;
  const data::StageSeconds now = source.loader->stages();
  const auto found =
      data::find_bottleneck({now - source.stages_before, source.loader->num_threads(), source.seconds, source.waited});
  source.stages_before = now;
  source.seconds = source.waited = 0;
  if (!found) return;
  Json fields = found->to_json();
  fields["step"] = step_;
  ledger_->note("loader_bottleneck", fields);
  ledger_->say(found->to_text());
}

bool Session::evaluate(Source& source) {
  const double start = steady_seconds();
  if (ema_) ema_->swap();
  task::Metrics metrics(job_.model.classes, 0);
  if (source.validate) {
    metrics = evaluate_features(network_, *source.validate, job_.model.classes, group_, options_.device);
  } else {
    const auto reader = loader(*collections_.validate, data::Use::evaluate);
    step::EvaluateOptions how{
        .classes = job_.model.classes, .worst = 0, .precision = job_.training.precision, .device = options_.device};
    metrics = step::evaluate(network_, *reader, group_, how);
    report_bad_samples(reader.get());
  }
  if (ema_) ema_->swap();
  evaluate_seconds_ = steady_seconds() - start;
  top1_ = metrics.top1();
  loss_ = metrics.loss();
  if (ledger_) ledger_->evaluate(step_, metrics, ema_ != nullptr, evaluate_seconds_);
  const bool better = !best_ || *top1_ > *best_;
  if (better) best_ = top1_;
  return better;
}

bool Session::save(step::Step& step, bool best) {
  if (!folder_) return true;
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

// Names each file once, however many ranks, epochs and phases meet it.
void Session::report_bad_samples(const data::Loader* loader) {
  if (!loader || job_.data.on_bad_sample == spec::OnBadSample::stop) return;
  auto bad = loader->bad_samples();
  std::erase_if(bad, [&](const data::BadSample& sample) { return bad_files_.contains(sample.path); });
  for (const auto& sample : step::over_ranks(bad, group_)) {
    if (!bad_files_.insert(sample.path).second || !ledger_) continue;
    Json fields = Json::object();
    fields["path"] = sample.path;
    fields["reason"] = sample.reason;
    fields["step"] = step_;
    ledger_->note("bad_sample", fields);
    ledger_->say(text("skipped ", sample.path, ": ", sample.reason));
  }
}

double Session::seconds() const {
  return seconds_before_ + steady_seconds() - started_;
}

TrainResult Session::finish() {
  TrainResult result;
  result.finished = !stopped();
  result.stop_reason = stop_reason_;
  result.step = step_;
  result.total_steps = timetable_.total_steps();
  result.resumed_at = resumed_at_;
  result.seconds = seconds();
  result.bad_samples = static_cast<int64_t>(bad_files_.size());
  result.top1 = top1_;
  result.loss = loss_;
  if (!folder_) return result;
  if (watch_) watch_->end(step_, stopped() ? std::nullopt : std::optional(result.seconds));
  Json fields = Json::object();
  fields["step"] = step_;
  if (stopped()) {
    fields["reason"] = stop_reason_;
    ledger_->note("stop", fields);
  } else {
    const base::TensorMetadata metadata{
        {"format", "pt"}, {"model", job_.model.name}, {"classes", Json::array_of(collections_.train.classes).dump(-1)}};
    result.weights_sha256 =
        write_tensors(folder_->paths().weights(), ema_ ? ema_->averages() : all_tensors(network_), metadata);
    fields["seconds"] = result.seconds;
    fields["weights_sha256"] = result.weights_sha256;
    if (top1_) fields["top1"] = *top1_;
    if (loss_) fields["loss"] = *loss_;
    ledger_->note("end", fields);
  }
  ledger_->sync();
  return result;
}

}  // namespace lockstep::verbs
