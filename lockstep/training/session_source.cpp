// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/session_source.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/stage.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/run/feeding.h"
#include "lockstep/run/threads.h"
#include "lockstep/site/memory.h"
#include "lockstep/step/evaluate.h"

namespace lockstep::training {

using base::Json;
using base::text;

namespace {

// A file may have line ends in its name: it must not forge a line of the log.
std::string on_one_line(const std::string& name) {
  const bool is_plain = std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return is_plain ? name : base::quote_json(name);
}

}  // namespace

loader::LoaderSeat Session::seat() const {
  return {.rank = group_.rank(),
          .ranks = group_.size(),
          .local_ranks = comm::locality().size,
          .threads = run::compute_threads(job_.training),
          .card = options_.device.is_cuda(),
          .validates = collections_.validate.has_value()};
}

std::unique_ptr<loader::Loader> Session::loader(const loader::Collection& collection, loader::Use use) const {
  if (use == loader::Use::train)
    return loader::make_loader(collection, loader::training_loader(job_, seat()), data_state());
  return loader::make_loader(collection, loader::feature_loader(job_, seat()), {.seed = job_.training.seed});
}

std::unique_ptr<loader::Loader> Session::validation_reader() const {
  loader::LoaderOptions options = loader::validation_loader(job_, seat());
  const auto count = static_cast<int64_t>(collections_.validate->samples.size());
  run::EvaluationShare share = run::evaluation_share(count, options.global_batch, group_.rank(), group_.size());
  share.from.seed = options.seed;
  options.batches = share.batches;
  return loader::make_loader(*collections_.validate, options, share.from);
}

run::LoaderState Session::data_state() const {
  return timetable_.loader_state(step_ + data_shift_);
}

void Session::stage_shards() {
  if (job_.data.stage.empty()) return;
  if (!collections_.train.shards) {
    throw base::Error(base::Blame::user, text("data.stage copies shards; ", job_.data.train, " has none"),
                      "lockstep prep makes shards of it; or leave data.stage out");
  }
  std::vector<loader::Collection*> all{&collections_.train};
  if (collections_.validate && collections_.validate->shards) all.push_back(&*collections_.validate);
  for (loader::Collection* collection : all) {
    const loader::StagePlan plan = loader::plan_stage(*collection, job_.data.stage);
    if (ledger_) {
      Json fields = Json::object();
      fields["folder"] = plan.folder.string();
      fields["bytes"] = plan.bytes;
      fields["bytes_there"] = plan.bytes_there;
      fields["promised_seconds"] = plan.seconds();
      fields["fits"] = plan.fits();
      ledger_->note("stage", fields);
      ledger_->say(plan.to_text());
    }
    if (plan.fits()) collection->staging = std::make_shared<loader::Staging>(*collection, plan);
  }
}

void Session::tell_of_staging() {
  const auto& staging = collections_.train.staging;
  if (told_of_staging_ || !ledger_ || !staging || !staging->is_done()) return;
  told_of_staging_ = true;
  const loader::Staging::Progress progress = staging->progress();
  Json fields = Json::object();
  fields["step"] = step_;
  fields["shards"] = progress.shards;
  fields["bytes"] = progress.bytes;
  fields["trouble"] = progress.trouble;
  ledger_->note("staged", fields);
  ledger_->say(progress.trouble.empty() ? text("all ", progress.shards, " shards are copied to this node and in use")
                                        : text("the shards are read from their source: ", progress.trouble));
}

void Session::check_features() const {
  const auto usable = static_cast<int64_t>(site::read_memory().usable());
  auto samples = static_cast<int64_t>(collections_.train.samples.size());
  if (collections_.validate) samples += static_cast<int64_t>(collections_.validate->samples.size());
  for (const run::FeatureNeeds& needs : feature_needs(job_, network_, options_.device, samples)) {
    run::check_feature_memory(needs, comm::locality().size, usable);
  }
}

std::optional<Features> Session::features(const loader::Collection& collection, size_t to, const char* what) {
  const auto count = static_cast<int64_t>(collection.samples.size());
  const auto reader = loader(collection, loader::Use::evaluate);
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
  const double start = base::steady_seconds();
  std::optional<Features> result = compute_features(network_, *reader, count, group_, request);
  if (!result) {
    stop_reason_ = reason_of_all(why);
    return result;
  }
  report_bad_samples(reader.get());
  if (ledger_) {
    const double took = base::steady_seconds() - start;
    ledger_->features(step_, count, took);
    ledger_->say(text("cached features of ", count, " ", what,
                      " samples: ", base::format_bytes(static_cast<double>(result->values.nbytes())), " in ",
                      base::duration_text(took)));
  }
  return result;
}

Session::Source Session::open_source(const run::Stage& stage, size_t from) {
  Source source;
  if (!stage.phase.cache_features) {
    source.loader = loader(collections_.train, loader::Use::train);
    if (run::is_fed(job_.data.pixels, options_.device.is_cuda()) && !history_) {
      source.feeder = std::make_unique<step::Feeder>(*source.loader, options_.device);
    }
    return source;
  }
  source.train = features(collections_.train, from, "training");
  if (collections_.validate && !stopped()) source.validate = features(*collections_.validate, from, "validation");
  return source;
}

void Session::say_pace(Source& source) {
  if (!source.loader) return;
  const loader::StageSeconds now = source.loader->stages();
  const auto found = loader::find_bottleneck({now - source.stages_before, source.loader->num_threads(), source.seconds,
                                              source.waited, collections_.train.shards != nullptr});
  source.stages_before = now;
  source.seconds = source.waited = 0;
  if (!found) return;
  Json fields = found->to_json();
  fields["step"] = step_;
  ledger_->note("loader_bottleneck", fields);
  constexpr double kMuchMore = 1.5;  // than was said before: a person needs to read it once
  if (found->stage == source.told.stage && found->waited_share < kMuchMore * source.told.waited_share) return;
  source.told = *found;
  ledger_->say(found->to_text());
}

// Names each file once, however many ranks, epochs and phases meet it.
void Session::report_bad_samples(const loader::Loader* loader) {
  if (!loader || job_.data.on_bad_sample == spec::OnBadSample::stop) return;
  auto bad = loader->bad_samples();
  std::erase_if(bad, [&](const loader::BadSample& sample) { return bad_files_.contains(sample.path); });
  for (const auto& sample : step::over_ranks(bad, group_)) {
    if (!bad_files_.insert(sample.path).second || !ledger_) continue;
    Json fields = Json::object();
    fields["path"] = sample.path;
    fields["reason"] = sample.reason;
    fields["step"] = step_;
    ledger_->note("bad_sample", fields);
    const bool repeats = sample.reason.starts_with(sample.path + ": ");
    const std::string reason = repeats ? sample.reason.substr(sample.path.size() + 2) : sample.reason;
    ledger_->say(text("skipped ", on_one_line(sample.path), ": ", reason));
  }
}

}  // namespace lockstep::training
