// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/study.h"
#include "lockstep/tune/study_file.h"

namespace lockstep::tune {

// The file names of a study: `studies/<name>/...`. Plain paths, nothing is touched.
struct StudyPaths {
  base::Path root;

  base::Path study() const { return root / "study.json"; }  // as it was begun or last gone on with
  base::Path job() const { return root / "job.json"; }      // the job that is tuned
  base::Path log() const { return root / "study.log"; }     // Optuna's journal
  base::Path workers() const { return root / "workers"; }   // a folder that each living worker holds
  base::Path trial(int64_t number) const { return root / "trials" / std::to_string(number); }  // a run folder
  base::Path journal() const { return root / "journal.jsonl"; }  // of the sessions, for chains
  base::Path report() const { return root / "report.html"; }
};

// What a trial will cost, before it starts.
struct TrialCost {
  bool feasible = true;
  std::string why_not = {};
  double seconds = 0;  // 0: not known
};

struct StudyOptions {
  spec::Study study;
  base::Path folder;                      // absolute
  std::vector<std::string> program = {};  // with {name}s; empty: the study's job is trained
  std::optional<spec::Job> job = {};
  std::string lockstep;  // this program
  std::string device = "cpu";
  int64_t workers = 1;                 // trials at once
  std::vector<std::string> gpus = {};  // to be shared out
  std::optional<double> seconds_left = {};
  std::function<std::string()> stop = [] { return std::string(); };  // why to stop now; empty: go on
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<TrialCost(const std::vector<std::string>& sets)> plan = {};  // empty: costs are not planned
};

struct StudyResult {
  int64_t complete = 0;
  int64_t pruned = 0;
  int64_t infeasible = 0;  // never started
  int64_t failed = 0;
  int64_t running = 0;
  int64_t paused = 0;  // behind a rung of asha
  int64_t unpaid = 0;  // made, and dearer than what is left of the budget
  double node_hours = 0;
  std::string stopped = {};  // why this session ended before the study; empty: the study is over
  std::optional<Trial> best = {};
};

// Works on the study until it is over, its budget is used up, or it has to stop: with a budget a trial starts only if
// what it and those under way are planned to cost is left (what is not planned costs the mean of the trials so far);
// beside any number of others on the same folder. Trials of workers that are known to be dead are taken over: a trial
// is never lost, and never done twice.
StudyResult run_study(const StudyOptions& options);

// Counts, cost and best of what is in the file.
StudyResult summarise(const Trials& trials);

}  // namespace lockstep::tune
