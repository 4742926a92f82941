// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/session_source.h"

#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/verbs/train/threads.h"

namespace lockstep::verbs {

using base::Json;
using base::text;
using step::steady_seconds;

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
  options.num_slices = train ? job_.training.virtual_ranks : 0;
  options.threads = job_.data.threads > 0 ? job_.data.threads : compute_threads(job_.training);
  options.augment = train;
  return data::make_loader(collection, options, train ? data_state() : data::LoaderState{.seed = job_.training.seed});
}

data::LoaderState Session::data_state() const {
  return timetable_.loader_state(step_ + data_shift_);
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

}  // namespace lockstep::verbs
