// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/evaluation.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/training/session_source.h"

namespace lockstep::training {

bool Session::evaluation_due(int64_t step) const {
  return collections_.validate && timetable_.due_or_last(step, job_.evaluation.every_epochs);
}

bool Session::owes_evaluation() const {
  return step_ > 0 && evaluated_ < step_ && evaluation_due(step_);
}

// The whole time of a sitting is before it. Should that not do either, the next sitting goes on without it.
void Session::catch_up(step::Step& step, Source& source) {
  if (stopped() || !owes_evaluation()) return;
  step.assemble();
  evaluated_ = step_;
  if (agreed(evaluation_may_be_cut())) save_durably(step);
  if (const Verdict verdict = evaluate(source); verdict.best) save(step, verdict);
}

// A pass without backward is shorter than training on as many samples; three times that is taken for the worst. The
// busiest rank counts: ranks have whole batches.
bool Session::evaluation_may_be_cut() const {
  if (!options_.seconds_left) return false;
  const auto ranks = static_cast<double>(group_.size());
  const auto samples = static_cast<int64_t>(collections_.validate->samples.size());
  const int64_t batch = run::evaluation_rows(job_, group_.size(), options_.device.is_cuda());
  const auto rows = static_cast<double>(run::busiest_rows(samples, batch, group_.size()));
  const double guess = 3 * step_seconds_ * std::ceil(rows * ranks / static_cast<double>(job_.training.global_batch));
  const double needed = evaluate_seconds_ > 0 ? 1.5 * evaluate_seconds_ : guess;
  return base::steady_seconds() - started_ + needed + 2 * save_seconds_ > *options_.seconds_left;
}

Session::Verdict Session::evaluate(Source& source) {
  const run::Activity::During evaluating(*options_.activity, run::Phase::evaluating);
  if (saver_ && pending_.best) settle(Wait::yes);  // only what was saved is the best so far
  const auto best_before = best_;
  const double start = base::steady_seconds();
  if (ema_) ema_->swap();
  task::Metrics metrics(job_.model.classes, 0);
  const step::EvaluateOptions how{
      .classes = job_.model.classes, .worst = 0, .precision = job_.training.precision, .device = options_.device};
  if (source.validate) {
    metrics = evaluate_features(network_, *source.validate,
                                run::evaluation_rows(job_, group_.size(), options_.device.is_cuda()), group_, how);
  } else {
    const auto reader = validation_reader();
    metrics = step::evaluate(network_, *reader, group_, how);
    report_bad_samples(reader.get());
  }
  if (ema_) ema_->swap();
  if (metrics.samples() == 0) {
    throw base::Error(base::Blame::machine,
                      base::text("step ", step_, ": not one of the ", collections_.validate->samples.size(),
                                 " validation samples could be read"),
                      base::text("is the file system still there? ls ", job_.data.validate,
                                 "; when it is, the same command goes on"));
  }
  evaluate_seconds_ = base::steady_seconds() - start;
  evaluated_ = step_;
  top1_ = metrics.top1();
  const bool sound = std::isfinite(metrics.loss());  // a network of NaNs is the best of nothing
  loss_ = sound ? std::optional(metrics.loss()) : std::nullopt;
  loss_cut_ = metrics.loss_cut() > 0;
  if (ledger_) ledger_->evaluate(step_, metrics, ema_ != nullptr, evaluate_seconds_);
  // Rank 0 alone knows whether the best so far was saved.
  const bool best = agreed(sound && (!best_ || *top1_ > *best_));
  if (best) best_ = top1_;
  return {best, best_before};
}

}  // namespace lockstep::training
