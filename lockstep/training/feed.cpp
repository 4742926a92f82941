// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/feed.h"

#include "lockstep/base/clock.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/feeding.h"
#include "lockstep/training/bad_samples.h"

namespace lockstep::training {

using base::Json;
using base::text;

size_t first_trained(const TrainingContext& context, const run::PhaseSpan& span) {
  return span.phase.train_from.empty() ? 0 : context.network.index_of(span.phase.train_from);
}

Feed::Feed(TrainingContext& context, const run::PhaseSpan& span, const std::function<std::string()>& wants_stop)
    : context_(context) {
  if (!span.phase.cache_features) {
    loader::LoaderOptions options = loader::training_loader(context.job, context.loader_settings());
    options.give_up = [&context] { return context.stop.is_overdue(base::steady_seconds()); };
    loader_ = loader::make_loader(context.collections.train, options, context.data_state());
    if (run::is_fed(context.job.data.pixels, context.options.device.is_cuda()) && !context.history) {
      feeder_ = std::make_unique<step::Feeder>(*loader_, context.options.device);
    }
    return;
  }
  const size_t from = first_trained(context, span);
  const auto views = span.phase.cache_flips ? spec::Views::flip : spec::Views::center;
  train_ = compute(context.collections.train, {"training", from, views}, wants_stop);
  if (const double balance = context.job.data.balance; train_ && balance > 0) {
    train_->balanced = loader::balanced_order(context.collections.train, balance, context.job.training.seed);
  }
  if (context.collections.validate && !context.stop.is_set()) {
    validate_ = compute(*context.collections.validate, {"validation", from, context.job.evaluation.views}, wants_stop);
  }
}

std::optional<Features> Feed::compute(const loader::Collection& collection, const What& what,
                                      const std::function<std::string()>& wants_stop) {
  const auto count = static_cast<int64_t>(collection.samples.size());
  loader::LoaderOptions options = loader::feature_loader(context_.job, context_.loader_settings());
  options.give_up = [this] { return context_.stop.is_overdue(base::steady_seconds()); };
  const auto reader = loader::make_loader(collection, options, {.seed = context_.job.training.seed});
  FeatureRequest request{.to = what.to,
                         .views = what.views,
                         .precision = context_.job.training.precision,
                         .device = context_.options.device};
  if (context_.ledger) {
    request.seen = [&](int64_t seen) {
      context_.ledger->show(
          text("features of the frozen blocks, ", what.name, ": ", seen * context_.group.size(), "/", count));
    };
  }
  std::string why;
  request.stop = [&] {
    why = wants_stop();
    return !why.empty();
  };
  const double start = base::steady_seconds();
  std::optional<Features> result;
  try {
    result = compute_features(context_.network, *context_.task, *reader, count, context_.group, request);
  } catch (const loader::GaveUp& hung) {  // alone there is nobody to agree with; other ranks wait for this one
    if (context_.group.size() > 1) throw;
    context_.ledger->say(hung.what());
    why = context_.options.stop();
  }
  if (!result) {
    context_.stop.agree(why);
    return result;
  }
  report_bad_samples(context_, reader.get());
  const double took = base::steady_seconds() - start;
  if (context_.watch) context_.watch->features(took);
  if (context_.ledger) {
    context_.ledger->features(context_.state.step, count, took);
    context_.ledger->say(text("cached features of ", count, " ", what.name,
                              " samples: ", base::format_bytes(static_cast<double>(result->bytes())), " in ",
                              base::duration_text(took)));
  }
  return result;
}

step::Samples Feed::next() {
  const int64_t step = context_.state.step;
  if (train_) {
    return feature_batch(*train_, context_.job.training, context_.data_state(), step, context_.group,
                         context_.options.device);
  }
  if (feeder_) {
    step::Samples fed = feeder_->next();
    waited_ = feeder_->wait_seconds();
    fed.step = step;
    return fed;
  }
  loader_->recycle(std::move(batch_));
  batch_ = loader_->next();
  waited_ = batch_.wait_seconds;
  step::Samples samples = step::to_samples(batch_, context_.options.device);
  samples.step = step;
  return samples;
}

void Feed::step_took(double seconds) {
  pace_.seconds += seconds;
  pace_.waited += waited_;
}

void Feed::say_pace() {
  if (!loader_) return;
  const loader::PipelineSeconds now = loader_->pipeline_seconds();
  const auto found = loader::find_bottleneck({now - pace_.before, loader_->num_threads(), pace_.seconds, pace_.waited,
                                              context_.collections.train.shards != nullptr});
  pace_.before = now;
  pace_.seconds = pace_.waited = 0;
  if (!found) return;
  Json fields = found->to_json();
  fields["threads"] = loader_->num_threads();
  fields["from_shards"] = found->from_shards;
  fields["step"] = context_.state.step;
  context_.ledger->note("loader_bottleneck", fields);
  constexpr double kMuchMore = 1.5;  // than was said before: a person needs to read it once
  if (found->pipeline_stage == pace_.told.pipeline_stage && found->waited_share < kMuchMore * pace_.told.waited_share)
    return;
  pace_.told = *found;
  context_.ledger->say(found->to_text());
}

}  // namespace lockstep::training
