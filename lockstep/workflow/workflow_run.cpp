// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/workflow_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"
#include "lockstep/spec/workflow_rules.h"
#include "lockstep/tune/child.h"
#include "lockstep/workflow/digest.h"
#include "lockstep/workflow/freshness.h"
#include "lockstep/workflow/stage_run.h"

namespace lockstep::workflow {
namespace {

using base::Blame;
using base::Error;
using base::text;
using What = StageOutcome::What;

constexpr double kLookEvery = 0.2;  // seconds, for signals; the end of a stage is seen at once

class Runner {
 public:
  explicit Runner(const RunOptions& options)
      : options_(options),
        stages_(options.workflow.stages),
        needs_(spec::stage_needs(options.workflow)),
        order_(spec::stage_order(options.workflow)),
        paths_{options.state},
        free_cores_(options.cores),
        free_gpus_(options.gpus) {
    base::make_synced_folders(options.state);
    if (options.only.empty()) held_.emplace(options.state);
    digests_.emplace(paths_.digests());
    result_.stages.resize(stages_.size());
    for (const auto& stage : stages_) check_gpus(stage);
    if (options.only.empty()) check_files(options.workflow, options.document);
  }

  RunResult run() {
    while (true) {
      look_for_stop();
      const bool changed = start_what_can();
      if (running_.empty() && !changed) break;
      wait();
      take_what_ended();
    }
    return std::move(result_);
  }

 private:
  bool is_meant(size_t stage) const { return options_.only.empty() || stages_[stage].name == options_.only; }

  void check_gpus(const spec::Stage& stage) const {
    if (stage.resources.gpus <= static_cast<int64_t>(options_.gpus.size())) return;
    if (!options_.only.empty() && stage.name != options_.only) return;
    throw Error(
        Blame::machine,
        text("stage '", stage.name, "' asks for ", stage.resources.gpus, " GPUs, and here are ", options_.gpus.size()),
        text("run it on a machine that has them (--on MACHINE), or --set stages.", stage.name, ".resources.gpus=0"));
  }

  void look_for_stop() {
    const int signal = options_.stop ? options_.stop() : 0;
    if (signal == 0 || told_to_stop_) return;
    told_to_stop_ = true;  // a stage that has stopped by itself tells nobody else
    result_.stopped = true;
    for (const auto& [stage, run] : running_) run->send(signal);
  }

  // What became of those that a stage waits for: `ran` where all of them are done.
  What fate_of_needs(size_t stage) const {
    if (!options_.only.empty()) return What::ran;
    bool open = false;
    for (const size_t need : needs_[stage]) {
      const What what = result_.stages[need].what;
      if (what == What::failed || what == What::blocked || what == What::stopped) return What::blocked;
      open |= what != What::ran && what != What::up_to_date;
    }
    return open ? What::waiting : What::ran;
  }

  // True when a stage was started, or found up to date or blocked: others may be able to go on.
  bool start_what_can() {
    bool changed = false;
    for (const size_t stage : order_) {
      StageOutcome& outcome = result_.stages[stage];
      if (outcome.what != What::waiting || running_.contains(stage) || result_.stopped || !is_meant(stage)) continue;
      const What fate = fate_of_needs(stage);
      if (fate == What::blocked) {
        outcome.what = What::blocked;
        outcome.why = "what it waits for is not done";
        changed = true;
      } else if (fate == What::ran) {
        changed |= start_one(stage);
      }
    }
    return changed;
  }

  // What cannot be started has failed: the others go on.
  bool start_one(size_t index) {
    try {
      return try_to_start(index);
    } catch (const Error& error) {
      refuse(index, error.what(), error.exit_code());
    } catch (const std::filesystem::filesystem_error& error) {
      refuse(index, error.what(), static_cast<int>(Blame::machine));
    }
    return true;
  }

  bool try_to_start(size_t index) {
    const spec::Stage& stage = stages_[index];
    StageOutcome& outcome = result_.stages[index];
    auto found = seen_.find(index);
    if (found == seen_.end()) found = seen_.emplace(index, look_at(stage, paths_, *digests_)).first;
    Freshness& freshness = found->second;
    const bool again = std::count(options_.again.begin(), options_.again.end(), stage.name) > 0;
    if (freshness.up_to_date() && !again) {
      outcome.what = What::up_to_date;
      say(stage, "up to date");
      return true;
    }
    if (freshness.reasons.empty()) freshness.reasons.emplace_back("asked for by --again");
    const auto share = take_share(stage);
    if (!share) return false;
    outcome.why = base::join(freshness.reasons, "; ");
    say(stage, text("runs: ", outcome.why));
    ++outcome.attempts;
    try {
      running_[index] = std::make_unique<StageRun>(stage, paths_, freshness, *share, options_.program);
    } catch (...) {
      give_back(*share);
      throw;
    }
    return true;
  }

  void refuse(size_t index, const std::string& why, int code) {
    StageOutcome& outcome = result_.stages[index];
    outcome.what = What::failed;
    outcome.why = why;
    outcome.code = code;
    say(stages_[index], text("failed: ", why));
  }

  std::optional<StageShare> take_share(const spec::Stage& stage) {
    const auto cores = static_cast<size_t>(cores_here(stage, static_cast<int64_t>(options_.cores.size())));
    const auto gpus = static_cast<size_t>(stage.resources.gpus);
    if (cores > free_cores_.size() || gpus > free_gpus_.size()) return std::nullopt;
    StageShare share;
    share.here = options_.here;
    for (size_t i = 0; i < cores; ++i) share.cores.push_back(free_cores_[i]);
    for (size_t i = 0; i < gpus; ++i) share.gpus.push_back(free_gpus_[i]);
    free_cores_.erase(free_cores_.begin(), free_cores_.begin() + static_cast<std::ptrdiff_t>(cores));
    free_gpus_.erase(free_gpus_.begin(), free_gpus_.begin() + static_cast<std::ptrdiff_t>(gpus));
    return share;
  }

  void give_back(const StageShare& share) {
    free_cores_.insert(free_cores_.end(), share.cores.begin(), share.cores.end());
    free_gpus_.insert(free_gpus_.end(), share.gpus.begin(), share.gpus.end());
  }

  void wait() const {
    if (running_.empty()) return;
    std::vector<const tune::Child*> children;
    children.reserve(running_.size());
    for (const auto& [stage, run] : running_) children.push_back(&run->child());
    tune::wait_for(children, kLookEvery);
  }

  void take_what_ended() {
    for (auto at = running_.begin(); at != running_.end();) {
      if (!at->second->poll(*digests_)) {
        ++at;
        continue;
      }
      const size_t index = at->first;
      take_outcome(index, *at->second);
      give_back(at->second->share());
      at = running_.erase(at);
      seen_.erase(index);
    }
  }

  void take_outcome(size_t index, const StageRun& run) {
    StageOutcome& outcome = result_.stages[index];
    const spec::Stage& stage = stages_[index];
    outcome.seconds += run.seconds();
    if (run.good()) {
      outcome.what = What::ran;
      say(stage, text("done in ", base::duration_text(run.seconds())));
      return;
    }
    outcome.why = run.trouble();
    outcome.code = run.code();
    if (run.code() == base::kExitRequeue || result_.stopped) {
      outcome.what = What::stopped;
      result_.stopped = true;
      say(stage, "stopped; the same command goes on");
    } else if (outcome.attempts <= stage.retries) {
      say(stage, text("failed, tried again: ", outcome.why));
    } else {
      outcome.what = What::failed;
      say(stage, text("failed: ", outcome.why));
    }
  }

  void say(const spec::Stage& stage, const std::string& words) const {
    if (options_.say) options_.say(text(stage.name, ": ", words));
  }

  const RunOptions& options_;
  const std::vector<spec::Stage>& stages_;
  std::vector<std::vector<size_t>> needs_;
  std::vector<size_t> order_;
  StatePaths paths_;
  std::vector<int> free_cores_;
  std::vector<std::string> free_gpus_;
  std::optional<run::RunFolder> held_;
  std::optional<Digests> digests_;
  std::map<size_t, Freshness> seen_;  // of stages that wait for free cores
  std::map<size_t, std::unique_ptr<StageRun>> running_;
  RunResult result_;
  bool told_to_stop_ = false;
};

}  // namespace

int64_t cores_here(const spec::Stage& stage, int64_t cores) {
  const bool own_verb = stage.command.empty() && stage.copy.empty();
  const int64_t wanted = stage.resources.cores > 0 ? stage.resources.cores : own_verb ? cores : 1;
  return std::min(wanted, cores);
}

int64_t RunResult::count(What what) const {
  return std::count_if(stages.begin(), stages.end(), [&](const StageOutcome& one) { return one.what == what; });
}

const StageOutcome* RunResult::first_failure(size_t* stage) const {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].what != What::failed) continue;
    *stage = i;
    return &stages[i];
  }
  return nullptr;
}

RunResult run_workflow(const RunOptions& options) {
  return Runner(options).run();
}

}  // namespace lockstep::workflow
