// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/session.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/launch.h"
#include "lockstep/training/bad_samples.h"
#include "lockstep/training/replay.h"
#include "lockstep/training/starting_point.h"

namespace lockstep::training {

using base::Json;
using base::text;

namespace {

int64_t stored_bytes(const std::vector<model::Named>& tensors) {
  int64_t bytes = 0;
  for (const auto& entry : tensors) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  return bytes;
}

// Of the run that began last in this folder.
int64_t count_sessions(const run::History& history) {
  int64_t sessions = 0;
  for (const Json& event : history.events) {
    const std::string& name = event.at("event").as_string();
    if (name == "start") sessions = 0;
    if (name == "start" || name == "resume") ++sessions;
  }
  return std::max<int64_t>(1, sessions);
}

}  // namespace

Session::Session(const spec::Job& job, const TrainOptions& options, comm::Group& group)
    : context_(job, options, group),
      staging_(context_),
      saver_(context_),
      guard_(context_, saver_),
      evaluation_(context_) {}

void Session::resume() {
  const TrainOptions& options = context_.options;
  if (context_.ledger && options.plan) {
    context_.watch = std::make_unique<PlanWatch>(context_.job, options, context_.group.size(), *context_.ledger);
  }
  go_to_start(context_, find_checkpoint(context_));
  const TrainingState& state = context_.state;
  resumed_at_ = state.step;
  if (options.profile && context_.folder) {
    timeline_ = std::make_unique<Timeline>(context_.folder->paths().profile(), options.device,
                                           context_.timetable.total_steps() - state.step);
  }
  if (context_.history) context_.history->begin(comm::broadcast_text(context_.group, model::name_of_now()), state.step);
  write_start(context_);
  std::string why;
  if (context_.folder && !context_.is_done()) {
    why = context_.stop.check_start({.save = state.save_seconds, .step = state.step_seconds});
    if (!why.empty()) context_.ledger->say("too little time is left for another step");
  }
  context_.stop.follow(why);
  staging_.start();
}

const run::PhaseSpan* Session::next_phase() const {
  const int64_t step = context_.state.step;
  const run::Timetable& timetable = context_.timetable;
  if (context_.stop.is_set()) return nullptr;
  if (evaluation_.is_owed()) return &timetable.phase_at(step - 1);  // as the step before it was taken
  return context_.is_done() ? nullptr : &timetable.phase_at(step);
}

void Session::run(const run::PhaseSpan& span) {
  const size_t from = first_trained(context_, span);
  if (context_.ledger && (from > 0 || context_.timetable.phases().size() > 1)) {
    const std::string blocks = from > 0 ? text("from block '", span.phase.train_from, "' on, ", from, " blocks frozen")
                                        : text("all ", context_.network.blocks().size(), " blocks");
    context_.ledger->say(text("phase: training ", blocks, span.phase.freeze_norm ? ", batch norms held" : "",
                              ", steps ", span.begin + 1, " to ", span.end));
  }
  const int64_t weights = stored_bytes(model::all_tensors(context_.network));  // whole still, whatever training.zero
  step::Step step(context_.network, context_.group,
                  {.training = context_.job.training,
                   .device = context_.options.device,
                   .train_from = from,
                   .freeze_norm = span.phase.freeze_norm,
                   .ema = context_.ema.get(),
                   .objective = context_.objective});
  const TrainingState& state = context_.state;
  if (state.step > span.begin) step.load_state(model::read_tensors(context_.checkpoint, "optimizer"));
  saver_.say_budget(weights + step.state_bytes() + (context_.ema ? stored_bytes(context_.ema->averages()) : 0));
  if (context_.watch) context_.watch->phase(static_cast<size_t>(&span - context_.timetable.phases().data()));
  Feed feed(context_, span, [&] { return wants_stop(/*evaluates=*/false); });
  save_what_must_not_be_lost(step);
  if (context_.ledger) context_.ledger->phase(span);
  catch_up(step, feed);
  while (state.step < span.end && !context_.stop.is_set() && !rewound_ && !context_.is_done()) take_step(step, feed);
  step.assemble();  // the next phase, and the end, find whole weights
  if (context_.is_done()) {
    const bool writes = context_.folder != nullptr;
    state_sha256_ = state_sha256(context_, step.state([&](const std::string&) { return writes; }));
  }
  report_bad_samples(context_, feed.loader());
}

void Session::save_what_must_not_be_lost(const step::Step& step) {
  const int64_t at = context_.state.step;
  const bool stops = context_.stop.is_set();
  // A stop while features were computed: what the phase before has trained is not to be lost.
  const bool phase_before = stops && at > resumed_at_;
  // A spike before the first save by the clock needs a state to go back to.
  const bool first = at == 0 && context_.checkpoint.empty() && context_.job.training.spike_factor > 0 && !stops;
  // That the data of a rewind are left out must outlive a crash.
  if (phase_before || first || rewound_) saver_.save(step);
  rewound_ = false;
}

// The whole time of a session is before it. Should that not do either, the next session goes on without it.
void Session::catch_up(step::Step& step, const Feed& feed) {
  if (context_.stop.is_set() || !evaluation_.is_owed()) return;
  context_.state.evaluated = context_.state.step;
  const auto outcome = evaluate(step, feed);
  const bool ends = context_.is_done() && context_.state.step < context_.timetable.total_steps();
  if (ends) tell_early_end();
  if (outcome.best || ends) saver_.save(step, outcome);
}

void Session::take_step(step::Step& step, Feed& feed) {
  TrainingState& state = context_.state;
  if (context_.watch) context_.watch->before_step(context_.timetable.ends_epoch(state.step));
  if (timeline_) timeline_->before_step();
  const double start = base::steady_seconds();
  run::Activity& activity = *context_.options.activity;
  activity.enter(run::Phase::data);
  step::Samples samples;
  try {
    const Timeline::Range range(timeline_.get(), "data");
    samples = feed.next();
  } catch (const loader::GaveUp& hung) {
    stop_without_data(hung);
    return saver_.save(step);
  }
  activity.enter(run::Phase::computing);
  const double lr = context_.timetable.learning_rate(state.step);
  const std::string why = wants_stop(evaluation_.is_due(state.step + 1));
  const step::StepResult result = [&] {
    const Timeline::Range range(timeline_.get(), "step");
    return run_step(context_, step, samples, lr, !why.empty());
  }();
  activity.step_done(++state.step);
  const double seconds = base::steady_seconds() - start, waited = feed.wait_seconds();
  state.step_seconds = std::max(0.9 * state.step_seconds, seconds);
  feed.step_took(seconds);
  rank_times_.step({.seconds = seconds, .data = waited, .communication = result.communicate_seconds});
  if (context_.ledger) context_.ledger->step(state.step, result, lr, waited, seconds);
  if (context_.history) {
    context_.history->step(state.step, feed.batch(), result.loss, context_.network, step.partitioning());
    context_.group.barrier();  // no checkpoint of a step that a rank has not written down
  }
  if (context_.watch) {
    context_.watch->step(state.step,
                         {seconds, waited, result.compute_seconds, result.communicate_seconds, result.samples});
  }
  rewound_ = !guard_.accepts(result, samples.global_size, step, feed);
  if (rewound_) return;
  if (result.stop && state.step < context_.timetable.total_steps()) context_.stop.agree(why);
  after_step(step, feed);
}

// Other ranks may have had their batch and wait in the step for this one: there is nobody to agree with then, and their
// supervisor ends them all.
void Session::stop_without_data(const loader::GaveUp& hung) {
  if (context_.group.size() > 1) throw hung;
  context_.ledger->say(hung.what());
  context_.stop.agree(context_.options.stop());
}

void Session::write_timeline() {
  if (!timeline_ || !timeline_->write()) return;
  context_.ledger->say(text("profile: ", timeline_->file().string(), " (open it in ui.perfetto.dev)"));
}

void Session::after_step(step::Step& step, Feed& feed) {
  if (timeline_ && timeline_->is_complete()) write_timeline();
  saver_.settle(Saver::Wait::no);
  staging_.tell_when_done();
  const int64_t at = context_.state.step;
  const bool stops = context_.stop.is_set(), ends_epoch = context_.timetable.ends_epoch(at);
  const bool evaluates = !stops && evaluation_.is_due(at);
  const bool saves = stops || at == context_.timetable.total_steps() || saver_.is_due();
  guard_.check_ranks_agree(saves);
  if (RankTimes::is_due(at, resumed_at_) || ends_epoch) tell_pace(feed);
  const auto outcome = evaluates ? evaluate(step, feed) : Evaluation::Outcome{};
  if (evaluates && context_.is_done() && at < context_.timetable.total_steps()) tell_early_end();
  if (saves || evaluates || ends_epoch) report_bad_samples(context_, feed.loader());
  if (saves || outcome.best || context_.is_done() || context_.stop.is_set()) {
    const Timeline::Range range(timeline_.get(), "save");
    saver_.save(step, outcome);
  }
  if (context_.ledger && ends_epoch) {
    context_.ledger->end_epoch(at);
  }
  if (context_.watch && ends_epoch) context_.watch->end_epoch();
}

// Where the time goes, while it goes: which rank the others wait for, and what the loader is busy with.
void Session::tell_pace(Feed& feed) {
  const std::optional<Json> times = rank_times_.gather(context_.group, site::host_name());
  if (!context_.ledger) return;
  if (times) {
    Json fields = *times;
    fields["step"] = context_.state.step;
    context_.ledger->note("rank_times", fields);
  }
  feed.say_pace();
}

void Session::tell_early_end() {
  if (!context_.ledger) return;
  const TrainingState& state = context_.state;
  Json fields = Json::object();
  fields["step"] = state.step;
  fields["evaluations"] = state.patience.without;
  context_.ledger->note("early_stop", fields);
  context_.ledger->say(text("step ", state.step, ": ", state.patience.without,
                            " evaluations in a row without a better one: the run ends (training.early_stop)"));
}

Evaluation::Outcome Session::evaluate(step::Step& step, const Feed& feed) {
  step.assemble();
  if (evaluation_.may_be_cut()) saver_.save_durably(step);
  const Timeline::Range range(timeline_.get(), "evaluation");
  const run::Activity::During evaluating(*context_.options.activity, run::Phase::evaluating);
  saver_.settle_best();
  try {
    return evaluation_.run(feed);
  } catch (const loader::GaveUp& hung) {  // it is owed: the next session begins with it
    stop_without_data(hung);
    return {};
  }
}

std::string Session::wants_stop(bool evaluates) const {
  const TrainingState& state = context_.state;
  return context_.stop.wanted({.save = state.save_seconds,
                               .step = state.step_seconds,
                               .evaluation = evaluates ? state.evaluate_seconds : 0,
                               .saving = saver_.is_under_way()});
}

TrainResult Session::finish() {
  context_.options.activity->enter(run::Phase::ending);
  write_timeline();
  saver_.settle(Saver::Wait::yes);
  const TrainingState& state = context_.state;
  TrainResult result;
  result.finished = !context_.stop.is_set();
  result.stop_reason = context_.stop.reason();
  result.step = state.step;
  result.total_steps = context_.timetable.total_steps();
  result.resumed_at = resumed_at_;
  result.seconds = state.seconds.total();
  result.bad_samples = static_cast<int64_t>(state.bad_files.size());
  result.saves = saver_.num_saves();
  result.save_seconds = result.saves > 0 ? state.save_seconds : 0;
  result.stall_seconds = saver_.stall_seconds();
  result.stall_share = result.stall_seconds / context_.stop.elapsed();
  result.rewinds = guard_.num_rewinds();
  evaluation_.write(result);
  if (context_.folder) write_end(result);
  return result;
}

void Session::write_end(TrainResult& result) {
  const double start = base::steady_seconds();
  if (result.finished) result.weights_sha256 = export_weights(context_);
  if (context_.watch) {  // the weights are part of what is promised
    const double total = result.seconds + base::steady_seconds() - start;
    const run::History history = run::read_journal(context_.folder->paths().journal());
    context_.watch->end(result.step, result.finished ? std::optional(total) : std::nullopt, count_sessions(history));
  }
  Json fields = Json::object();
  fields["step"] = result.step;
  fields["saves"] = result.saves;
  fields["stall"] = result.stall_seconds;
  fields["stall_share"] = result.stall_share;
  if (result.finished) {
    fields["seconds"] = result.seconds;
    fields["weights_sha256"] = result.weights_sha256;
    if (state_sha256_.empty() && !context_.checkpoint.empty()) {  // killed between the last save and this
      state_sha256_ = state_sha256(context_, model::read_tensors(context_.checkpoint, "optimizer"));
    }
    if (!state_sha256_.empty()) fields["state_sha256"] = result.state_sha256 = state_sha256_;
    evaluation_.write(fields);
  } else {
    fields["reason"] = result.stop_reason;
  }
  context_.ledger->note(result.finished ? "end" : "stop", fields);
  context_.ledger->sync();
}

}  // namespace lockstep::training
