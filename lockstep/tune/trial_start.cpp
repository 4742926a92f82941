// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trial_start.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"

namespace lockstep::tune {
namespace {

using base::text;

// The training of a worker that was killed saves before it ends.
void wait_until_free(const base::Path& run) {
  const double since = base::steady_seconds();
  while (run::read_holder(run) && base::steady_seconds() - since < run::RunFolder::kStaleSeconds) ::usleep(100000);
}

std::unique_ptr<TrialRun> start_program_trial(const StudyOptions& options, const Space& space, const Trial& trial,
                                              ChildOptions child) {
  std::vector<std::pair<std::string, std::string>> values{{"trial", text(trial.number)}};
  for (const auto& parameter : space) {
    const auto value = trial.values.find(parameter.name);
    values.emplace_back(parameter.name, value == trial.values.end() ? "" : value_text(parameter, value->second));
  }
  child.time_limit = options.study.time_limit;
  return start_program(fill_in(options.program, values), child, options.study.scheduler != spec::StudyScheduler::none);
}

std::unique_ptr<TrialRun> start_job_trial(const StudyOptions& options, const Space& space, const Trial& trial,
                                          bool maximize, ChildOptions child) {
  const StudyPaths paths{options.folder};
  const base::Path run = paths.trial(trial.number);
  base::make_folders(run.parent_path());
  wait_until_free(run);
  child.environment.emplace_back("LOCKSTEP_BUSY_CORES", "0");
  child.death_signal = SIGTERM;
  child.most_file = 0;
  child.output = run.string() + ".out";
  const auto sets = to_sets(space, trial.values);
  JobTrial job;
  job.words = {options.lockstep, "train", paths.job().string(), "--run", run.string(), "--here"};
  for (const auto& set : sets) job.words.insert(job.words.end(), {"--set", set});
  if (options.device != "cpu") job.words.insert(job.words.end(), {"--device", options.device});
  if (options.study.ranks > 1) job.words.insert(job.words.end(), {"--ranks", text(options.study.ranks)});
  job.run = run;
  job.objective = options.study.objective;
  job.maximize = maximize;
  if (!trial.intermediate.empty()) job.reported = trial.intermediate.rbegin()->first;
  options.say(text("trial ", trial.number, ": ", base::join(sets, " ")));
  return start_job(job, child);
}

}  // namespace

std::unique_ptr<TrialRun> start_trial(const StudyOptions& options, const Space& space, const Share& share,
                                      const Trial& trial, bool maximize) {
  ChildOptions child;
  child.cores = share.cores;
  if (!share.gpus.empty()) child.environment.emplace_back("CUDA_VISIBLE_DEVICES", base::join(share.gpus, ","));
  return options.program.empty() ? start_job_trial(options, space, trial, maximize, std::move(child))
                                 : start_program_trial(options, space, trial, std::move(child));
}

}  // namespace lockstep::tune
