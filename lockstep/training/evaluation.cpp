// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/evaluation.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/training/agreement.h"
#include "lockstep/training/bad_samples.h"

namespace lockstep::training {

namespace {

int64_t rows_at_once(const TrainingContext& context) {
  return run::evaluation_rows(context.job, context.group.size(), context.options.device.is_cuda());
}

std::unique_ptr<loader::Loader> validation_reader(const TrainingContext& context) {
  loader::LoaderOptions options = loader::validation_loader(context.job, context.loader_settings());
  const auto count = static_cast<int64_t>(context.collections.validate->samples.size());
  run::EvaluationShare share =
      run::evaluation_share(count, options.global_batch, context.group.rank(), context.group.size());
  share.from.seed = options.seed;
  options.batches = share.batches;
  options.give_up = [&context] { return context.stop.is_overdue(base::steady_seconds()); };
  return loader::make_loader(*context.collections.validate, options, share.from);
}

// A pass without backward is shorter than training on as many samples; three times that is taken for the worst. The
// busiest rank counts: ranks have whole batches.
double guess_seconds(const TrainingContext& context) {
  const int64_t ranks = context.group.size();
  const auto samples = static_cast<int64_t>(context.collections.validate->samples.size());
  const auto rows = static_cast<double>(run::busiest_rows(samples, rows_at_once(context), ranks) * ranks);
  return 3 * context.state.step_seconds * std::ceil(rows / static_cast<double>(context.job.training.global_batch));
}

}  // namespace

bool Evaluation::is_due(int64_t step) const {
  return context_.collections.validate && context_.timetable.evaluates(step, context_.job.evaluation);
}

bool Evaluation::is_owed() const {
  const TrainingState& state = context_.state;
  return state.step > 0 && state.evaluated < state.step && is_due(state.step);
}

bool Evaluation::may_be_cut() const {
  const TrainingState& state = context_.state;
  const double needed = state.evaluate_seconds > 0 ? 1.5 * state.evaluate_seconds : guess_seconds(context_);
  return answer_of_rank_0(!context_.stop.has_time_for(needed + 2 * state.save_seconds), context_.group);
}

std::unique_ptr<task::Score> Evaluation::measure(const Feed& feed) {
  const step::EvaluateOptions how{.task = context_.task,
                                  .objective = context_.objective,
                                  .worst = 0,
                                  .precision = context_.job.training.precision,
                                  .views = context_.job.evaluation.views,
                                  .device = context_.options.device};
  if (feed.validation()) {
    return evaluate_features(context_.network, *feed.validation(), rows_at_once(context_), context_.group, how);
  }
  const auto reader = validation_reader(context_);
  auto score = step::evaluate(context_.network, *reader, context_.group, how);
  report_bad_samples(context_, reader.get());
  return score;
}

// Whoever gives up waiting for data saves what is trained: the weights must be back by then. Any other error ends the
// session, and one of a full GPU must not meet a second one on its way.
std::unique_ptr<task::Score> Evaluation::measure_averages(const Feed& feed) {
  step::Ema* const ema = context_.ema.get();
  if (!ema) return measure(feed);
  ema->swap();
  try {
    auto score = measure(feed);
    ema->swap();
    return score;
  } catch (const loader::GaveUp&) {
    ema->swap();
    throw;
  }
}

Evaluation::Outcome Evaluation::run(const Feed& feed) {
  TrainingState& state = context_.state;
  Scores& scores = state.scores;
  const auto best_before = scores.best;
  const double start = base::steady_seconds();
  const auto score = measure_averages(feed);
  if (score->samples() == 0) {
    throw base::Error(base::Blame::machine,
                      base::text("step ", state.step, ": not one of the ",
                                 context_.collections.validate->samples.size(), " validation samples could be read"),
                      base::text("is the file system still there? ls ", base::shell_path(context_.job.data.validate),
                                 "; when it is, the same command goes on"));
  }
  state.evaluate_seconds = base::steady_seconds() - start;
  state.evaluated = state.step;
  scores.last = score->summary();
  if (context_.ledger) {
    context_.ledger->evaluate(state.step, *score, context_.ema != nullptr, state.evaluate_seconds);
  }
  const task::Headline& headline = scores.last->headline;
  const spec::EarlyStop& early = context_.job.training.early_stop;
  const bool last_phase = context_.timetable.phase_at(state.step - 1).end == context_.timetable.total_steps();
  if (early.patience > 0 && last_phase) state.patience.add(headline, score->is_sound(), early.min_delta);
  // Rank 0 alone knows whether the best so far was saved.
  // Of equals the later one, which has learnt for longer: a small validation set is soon all right.
  const bool better =
      score->is_sound() && (!scores.best || headline.value == *scores.best || headline.better_than(*scores.best));
  const bool best = answer_of_rank_0(better, context_.group);
  if (best) scores.best = headline.value;
  return {best, best_before};
}

void Evaluation::write(TrainResult& result) const {
  result.evaluation = context_.state.scores.last;
}

void Evaluation::write(base::Json& end) const {
  const auto& last = context_.state.scores.last;
  if (!last) return;
  end["headline"] = task::to_json(last->headline);
  for (const auto& member : last->figures.members()) end[member.key] = member.value;
}

}  // namespace lockstep::training
