// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/launch.h"
#include "lockstep/tune/pruner.h"
#include "lockstep/tune/records.h"
#include "lockstep/tune/sampler.h"
#include "lockstep/tune/share.h"
#include "lockstep/tune/study_budget.h"
#include "lockstep/tune/study_check.h"
#include "lockstep/tune/trial_run.h"
#include "lockstep/tune/trial_start.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr const char* kAttemptsAttr = "lockstep:attempts";
constexpr double kAskAgain = 0.2;       // seconds until there might be a trial for a free slot again
constexpr double kLookForDead = 2;      // seconds between looks for dead workers
constexpr double kReserve = 5;          // of the walltime, to write down how trials stand
constexpr int64_t kMostTakeovers = 20;  // of one trial: one that takes its node with it must not go on for ever

std::string worker_name() {
  std::random_device random;
  return text(site::host_name(), "-", ::getpid(), "-", random());
}

struct Slot {
  Share share = {};
  std::unique_ptr<TrialRun> run = nullptr;
  int64_t trial = -1;                                    // its id
  bool outdone = false;                                  // told to stop because others are better
  bool starting = false;                                 // chosen, and not yet started
  double begun = 0;                                      // steady seconds
  double before = 0;                                     // node-hours of earlier sessions
  std::vector<std::pair<int64_t, double>> reports = {};  // by step, not yet written down
};

class Session {
 public:
  explicit Session(const StudyOptions& options)
      : options_(options),
        study_(options.study),
        paths_{options.folder},
        space_(make_space(study_, options.job ? &*options.job : nullptr)),
        worker_(worker_name()),
        held_(paths_.workers() / worker_),
        file_(paths_.log(), study_.name, worker_) {
    if (study_.sampler == spec::StudySampler::grid) grid_size(space_);
    file_.make_study(is_maximized(study_, options.job));
    check_study(file_.trials(), study_, space_, paths_.log());
    order_ = {study_.sampler, static_cast<uint64_t>(study_.seed), study_.startup, file_.trials().maximize()};
    for (auto& share : share_out(options.workers, study_.ranks, own_cores(), options.gpus)) {
      slots_.emplace_back().share = std::move(share);
    }
    least_ = least_at_first();
    begun_ = base::steady_seconds();
  }

  StudyResult run() {
    while (true) {
      if (stopped_.empty()) look_whether_to_stop();
      if (look_at_trials()) file_.update([&](StudyFile::Update& update) { take_stock(update); });
      if (!given_up_.empty()) give_up();
      for (auto& slot : slots_) {
        if (slot.starting) start(slot);
      }
      const bool busy = std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.run != nullptr; });
      if (!busy && (!stopped_.empty() || is_over_)) break;
      wait();
    }
    tell_chain();
    StudyResult result = summarise(file_.trials());
    result.stopped = stopped_;
    return result;
  }

 private:
  // True: there is something to write down, or a free slot to fill.
  bool look_at_trials() {
    bool news = false;
    for (auto& slot : slots_) {
      if (!slot.run) {
        const bool may_start = stopped_.empty() && base::steady_seconds() - refused_ > kAskAgain;
        news |= may_start;
        continue;
      }
      news |= slot.run->poll();
      for (const auto& report : slot.run->take_reports()) slot.reports.push_back(report);
      news |= !slot.reports.empty();
    }
    return news;
  }

  void look_whether_to_stop() {
    stopped_ = options_.stop();
    double left = options_.seconds_left.value_or(1e300);
    if (study_.budget.walltime > 0) left = std::min(left, study_.budget.walltime);
    const double passed = base::steady_seconds() - begun_;
    // A training watches the scheduler's clock itself, and knows how long it takes to save.
    const double reserve = kReserve + (options_.program.empty() ? 10 : 0);
    if (stopped_.empty() && passed > std::max(left - reserve, left / 2)) stopped_ = "walltime";
    if (stopped_.empty()) return;
    for (auto& slot : slots_) {
      if (slot.run) slot.run->stop();
    }
  }

  // Under the lock: what happened since, then what is next.
  void take_stock(StudyFile::Update& update) {
    for (auto& slot : slots_) {
      if (!slot.run) continue;
      report(slot, update);
      if (slot.run->child().ended()) conclude(slot, update);
    }
    is_over_ = false;
    if (!stopped_.empty() || !given_up_.empty()) return;
    look_for_dead();
    bool none = false;
    for (auto& slot : slots_) {
      if (!slot.run && !slot.starting && !none) none = !choose(slot, update);
    }
    if (none) refused_ = base::steady_seconds();
    is_over_ = none && !others_may_leave_work(update.trials());
    if (is_over_) end_paused(update);
  }

  // Nothing will promote them any more.
  static void end_paused(StudyFile::Update& update) {
    for (const auto& trial : update.trials().all()) {
      if (!trial.is_paused()) continue;
      const double last = trial.intermediate.empty() ? NAN : trial.intermediate.rbegin()->second;
      record_end(update, trial.id, TrialState::pruned, std::isfinite(last) ? std::optional(last) : std::nullopt);
    }
  }

  // A program that goes on starts over, and prints again what it was judged by.
  bool is_known(const Trial& trial, int64_t step) const {
    return study_.scheduler == spec::StudyScheduler::asha && !trial.intermediate.empty() &&
           step <= trial.intermediate.rbegin()->first;
  }

  void report(Slot& slot, StudyFile::Update& update) {
    for (const auto& [step, value] : std::exchange(slot.reports, {})) {
      if (is_known(update.trials().by_id(slot.trial), step)) continue;
      update.add(7,
                 text("\"trial_id\":", slot.trial, ",\"step\":", step, ",\"intermediate_value\":", number_text(value)));
      if (slot.outdone || slot.run->child().ended()) continue;
      const Pruning pruning =
          judge(study_, update.trials().all(), update.trials().by_id(slot.trial), update.trials().maximize(), least_);
      for (const int64_t rung : pruning.rungs) {
        update.add(9, text("\"trial_id\":", slot.trial, ",\"system_attr\":{\"completed_rung_", rung,
                           "\":", number_text(value), "}"));
      }
      if (!pruning.stop && (pruning.rungs.empty() || pays_next_rung(slot, update.trials()))) continue;
      if (study_.scheduler == spec::StudyScheduler::asha) record_pause(update, slot.trial);
      slot.outdone = true;
      slot.run->stop();
    }
  }

  double spent_by(const Slot& slot) const {
    const double seconds = base::steady_seconds() - slot.begun;
    return slot.before + seconds / 3600 / static_cast<double>(slots_.size());
  }

  // What it takes to the next rung, which is `factor` times as far, or to the end where that is known to be nearer.
  double cost_of_going_on(const Trial& trial, double spent) const {
    const double to_rung = spent * static_cast<double>(study_.asha.factor - 1);
    const double planned = trial.user_attrs.double_or(kPlannedAttr, 0);
    return planned > spent ? std::min(to_rung, planned - spent) : to_rung;
  }

  // Of a trial that was promoted: the budget was asked for the way to this rung alone. Any other began as a whole one.
  bool pays_next_rung(const Slot& slot, const Trials& trials) {
    const Trial& trial = trials.by_id(slot.trial);
    if (!trial.system_attrs.contains(kPausedAttr)) return true;
    total(trials.all(), slot.trial);
    const double spent = spent_by(slot);
    return cost_of_going_on(trial, spent) <= left_ - (spent - slot.before);
  }

  void conclude(Slot& slot, StudyFile::Update& update) {
    const TrialEnd end = slot.run->end();
    const double node_hours = spent_by(slot);
    slot.run.reset();
    record_attr(update, slot.trial, Attr::user, kSpentAttr, node_hours);
    const Trial& trial = update.trials().by_id(slot.trial);
    if (trial.is_paused() && end.how != TrialEnd::How::complete) {
      record_release(update, slot.trial);  // what went wrong while it saved, if so, shows when it goes on
      ++done_;
    } else if (slot.outdone && !trial.is_paused() && end.how != TrialEnd::How::crashed) {
      record_end(update, slot.trial, TrialState::pruned, std::nullopt);
    } else if (end.how == TrialEnd::How::complete) {
      record_end(update, slot.trial, TrialState::complete, end.value);
      ++done_;
    } else if (end.how == TrialEnd::How::stopped) {
      // It stays a running trial of a worker that is about to be no more: the next session goes on with it.
      if (stopped_.empty()) stopped_ = "walltime";
    } else if (end.how == TrialEnd::How::crashed && stopped_.empty() &&
               trial.system_attrs.int_or(kAttemptsAttr, 0) < study_.retries) {
      options_.say(text("trial ", trial.number, ": ", end.trouble, "; once more"));
      record_attr(update, slot.trial, Attr::system, kAttemptsAttr, trial.system_attrs.int_or(kAttemptsAttr, 0) + 1);
      slot.starting = true;
      slot.before = node_hours;
      slot.outdone = false;
      return;
    } else {
      fail(update, trial, end.trouble);
    }
    slot.trial = -1;
  }

  void fail(StudyFile::Update& update, const Trial& trial, const std::string& trouble) {
    options_.say(text("trial ", trial.number, " failed: ", trouble));
    record_attr(update, trial.id, Attr::user, "error", trouble);
    record_end(update, trial.id, TrialState::failed, std::nullopt);
    ++failures_;
    // A program or job that cannot work at all shall not be tried a thousand times.
    constexpr int64_t kMostAtFirst = 5;
    const auto& trials = update.trials().all();
    const bool none = std::none_of(trials.begin(), trials.end(), [](const Trial& one) { return one.is_paused(); });
    if (done_ == 0 && failures_ >= kMostAtFirst && none && !best_of(trials, false)) given_up_ = trouble;
  }

  [[noreturn]] void give_up() const {
    throw Error(Blame::user, text("none of the first ", failures_, " trials gave a value; the last: ", given_up_),
                options_.program.empty()
                    ? text("try the job alone: lockstep train ", base::shell_path(paths_.job().string()))
                    : "try the program by hand: it ends with exit code 0 and prints a number");
  }

  void look_for_dead() {
    if (base::steady_seconds() - looked_ < kLookForDead) return;
    looked_ = base::steady_seconds();
    alive_.clear();
    dead_.clear();
  }

  // A worker that holds its folder lives.
  bool is_dead(const std::string& worker) {
    if (worker == worker_ || alive_.contains(worker)) return false;
    if (dead_.contains(worker)) return true;
    const bool lives = run::read_holder(paths_.workers() / worker).has_value();
    (lives ? alive_ : dead_).insert(worker);
    return !lives;
  }

  bool is_orphan(const Trial& trial) {
    if (trial.state != TrialState::running) return false;
    const std::string worker = trial.worker();
    return !worker.empty() && is_dead(worker);
  }

  // The next trial for a free slot: one that somebody enqueued, one that a dead worker left, one that is paused and
  // among the best of its rung by now, a new one; when there are no new ones, one of the best `factor` of a rung.
  // False: none.
  bool choose(Slot& slot, StudyFile::Update& update) {
    const auto& trials = update.trials().all();
    const double mean = total(trials).mean();
    bool is_used_up = false;
    for (size_t i = first_open_; i < trials.size(); ++i) {
      if (trials[i].state == TrialState::waiting) {
        if (trials[i].user_attrs.double_or(kPlannedAttr, mean) <= left_) return claim(slot, trials[i], update);
        is_used_up = true;
        say_once("the budget is used up");
        continue;
      }
      if (is_orphan(trials[i]) && trials[i].is_paused()) {
        record_release(update, trials[i].id);
      } else if (is_orphan(trials[i]) && take_over(slot, trials[i], update)) {
        return true;
      }
      if (i == first_open_ && is_finished(trials[i].state)) closed_.add(trials[first_open_++]);
    }
    const Totals totals = total(trials);
    const bool maximize = update.trials().maximize();
    if (const Trial* next = promotable(study_, trials, maximize, least_at_first())) return promote(slot, *next, update);
    if (!is_used_up && wants_more(totals, static_cast<int64_t>(trials.size())) && make_new(slot, update)) return true;
    least_ = study_.asha.factor;
    const Trial* next = promotable(study_, trials, maximize, least_);
    return next && promote(slot, *next, update);
  }

  // With a budget the best of each rung goes on at once: a study that is cut short shall have a complete trial.
  int64_t least_at_first() const { return std::isfinite(budget_of(study_)) ? 1 : 0; }

  bool make_new(Slot& slot, StudyFile::Update& update) {
    const auto& trials = update.trials().all();
    const auto values = sample(order_, space_, trials, static_cast<int64_t>(trials.size()));
    if (!values) return false;
    assign(slot, update.trials().next_trial_id(), 0);
    record_new(update, space_, *values);
    return true;
  }

  bool promote(Slot& slot, const Trial& trial, StudyFile::Update& update) {
    const double before = trial.user_attrs.double_or(kSpentAttr, 0);
    if (cost_of_going_on(trial, before) > left_) {
      say_once("the budget is used up");
      return false;
    }
    assign(slot, trial.id, before);
    record_promotion(update, trial.id);
    return true;
  }

  static void assign(Slot& slot, int64_t trial, double before) {
    slot.trial = trial;
    slot.before = before;
    slot.outdone = false;
    slot.starting = true;
  }

  bool claim(Slot& slot, const Trial& trial, StudyFile::Update& update) {
    const Values values = sample(order_, space_, update.trials().all(), trial.number).value_or(Values{});
    assign(slot, trial.id, 0);
    record_claim(update, trial.id, space_, values);
    return true;
  }

  bool take_over(Slot& slot, const Trial& trial, StudyFile::Update& update) {
    const int64_t id = trial.id;
    const int64_t takeovers = trial.system_attrs.int_or("lockstep:takeovers", 0);
    if (takeovers >= kMostTakeovers) {
      fail(update, trial, text(takeovers, " workers died with it"));
      return false;
    }
    const double before = trial.user_attrs.double_or(kSpentAttr, 0);
    record_attr(update, id, Attr::system, kWorkerAttr, worker_);
    record_attr(update, id, Attr::system, "lockstep:takeovers", takeovers + 1);
    assign(slot, id, before);
    return true;
  }

  // Also what is left of the budget for another trial, or for that one.
  Totals total(const std::vector<Trial>& trials, int64_t but = -1) {
    Totals totals = closed_;
    for (size_t i = first_open_; i < trials.size(); ++i) totals.add(trials[i]);
    left_ = budget_of(study_) - totals.node_hours;
    for (size_t i = first_open_; i < trials.size(); ++i) {
      if (trials[i].id != but) left_ -= totals.promised_to(trials[i]);
    }
    return totals;
  }

  bool wants_more(const Totals& totals, int64_t all) {
    // What could not be started costs nothing; a space in which nothing fits comes to an end all the same.
    if (all - totals.infeasible >= study_.trials || totals.infeasible > study_.trials + study_.startup) return false;
    if (left_ > totals.mean()) return true;
    say_once("the budget is used up");
    return false;
  }

  void say_once(const std::string& line) {
    if (said_.insert(line).second) options_.say(line);
  }

  // Whether a worker that still runs might die and leave a trial that this one would have to do.
  bool others_may_leave_work(const Trials& trials) {
    return std::any_of(
        trials.all().begin() + static_cast<long>(std::min(first_open_, trials.all().size())), trials.all().end(),
        [&](const Trial& trial) { return trial.state == TrialState::running && !trial.worker().empty(); });
  }

  void start(Slot& slot) {
    slot.starting = false;
    const Trial trial = file_.trials().by_id(slot.trial);  // a copy: an update reads what others add, and moves it
    slot.begun = base::steady_seconds();
    if (options_.program.empty() && !affordable(slot, trial)) return;
    slot.run = start_trial(options_, space_, slot.share, trial, file_.trials().maximize());
  }

  // Plans what it costs; one that cannot fit the memory is not started, and the sampler learns of it. One that the
  // budget does not pay waits, and no further one is made: with a larger budget it is the next.
  bool affordable(Slot& slot, const Trial& trial) {
    if (!options_.plan || !trial.intermediate.empty()) return true;
    const TrialCost cost = options_.plan(to_sets(space_, trial.values));
    const double node_hours = cost.seconds / 3600 / static_cast<double>(slots_.size());
    bool starts = cost.feasible;
    file_.update([&](StudyFile::Update& update) {
      if (cost.feasible && cost.seconds <= 0) return;  // nobody knows
      if (cost.feasible) {
        total(update.trials().all(), slot.trial);
        starts = node_hours <= left_;
        record_attr(update, slot.trial, Attr::user, kPlannedAttr, node_hours);
        if (!starts) postpone(update, trial, node_hours);
        return;
      }
      options_.say(text("trial ", trial.number, " cannot fit: ", cost.why_not));
      record_attr(update, slot.trial, Attr::system, kMemoryConstraint, 1.0);
      record_attr(update, slot.trial, Attr::user, "infeasible", cost.why_not);
      record_end(update, slot.trial, TrialState::pruned, std::nullopt);
    });
    if (!starts) slot.trial = -1;
    return starts;
  }

  void postpone(StudyFile::Update& update, const Trial& trial, double node_hours) {
    say_once(text("trial ", trial.number, " would take ", base::fixed(node_hours, 3), " node-hours, and ",
                  base::fixed(std::max(0.0, left_), 3),
                  " are left: the budget is used up (a larger budget.node_hours or money goes on with it)"));
    record_postponed(update, trial.id);
  }

  void wait() {
    std::vector<const Child*> children;
    for (const auto& slot : slots_) {
      if (slot.run) children.push_back(&slot.run->child());
    }
    const bool pipes = std::any_of(children.begin(), children.end(),
                                   [](const Child* child) { return child->output_descriptor() >= 0; });
    const bool waiting = children.empty();
    if (waiting && is_over_) return;
    wait_for(children, pipes ? 0.05 : waiting ? 0.2 : 0.1);
    if (base::steady_seconds() - told_ > 10) tell_chain();
  }

  // For whoever watches over a chain of jobs: a finished trial is what a step is to a training, and so is an evaluation
  // of any, since a trial may last for many jobs, or be paused for as long as the study lasts.
  void tell_chain() {
    told_ = base::steady_seconds();
    int64_t steps = 0;
    for (const auto& trial : file_.trials().all()) {
      steps += (is_finished(trial.state) ? 1 : 0) + static_cast<int64_t>(trial.intermediate.size());
    }
    run::Journal journal(paths_.journal());
    Json fields = Json::object();
    fields["step"] = steps;
    journal.append("save", fields);
  }

  const StudyOptions& options_;
  const spec::Study& study_;
  StudyPaths paths_;
  Space space_;
  std::string worker_;
  run::RunFolder held_;
  StudyFile file_;
  SamplerOrder order_;
  std::vector<Slot> slots_;
  std::string stopped_;
  bool is_over_ = false;
  // asha: so many go on from a rung however few are there. When no more trials are made several, since early values are
  // a poor guide to the last one.
  int64_t least_ = 0;
  size_t first_open_ = 0;  // trials before it are finished
  Totals closed_;          // of those: they change no more
  std::set<std::string> alive_;
  std::set<std::string> dead_;
  std::set<std::string> said_;
  std::string given_up_;  // why no trial can work
  double looked_ = -1e300;
  double refused_ = -1e300;  // when there was no trial to start
  double told_ = -1e300;
  double begun_ = 0;
  double left_ = std::numeric_limits<double>::infinity();
  int64_t done_ = 0;
  int64_t failures_ = 0;
};

}  // namespace

StudyResult summarise(const Trials& trials) {
  StudyResult result;
  for (const auto& trial : trials.all()) {
    const bool infeasible = trial.system_attrs.contains(kMemoryConstraint);
    result.infeasible += infeasible ? 1 : 0;
    result.complete += trial.state == TrialState::complete ? 1 : 0;
    result.pruned += trial.state == TrialState::pruned && !infeasible ? 1 : 0;
    result.failed += trial.state == TrialState::failed ? 1 : 0;
    result.paused += trial.is_paused() ? 1 : 0;
    result.unpaid += trial.state == TrialState::waiting && trial.user_attrs.contains(kPlannedAttr) ? 1 : 0;
    result.running += trial.state == TrialState::running && !trial.is_paused() ? 1 : 0;
    result.node_hours += trial.user_attrs.double_or(kSpentAttr, 0);
  }
  if (const Trial* best = best_of(trials.all(), trials.maximize())) result.best = *best;
  return result;
}

StudyResult run_study(const StudyOptions& options) {
  base::make_synced_folders(StudyPaths{options.folder}.workers());
  return Session(options).run();
}

}  // namespace lockstep::tune
