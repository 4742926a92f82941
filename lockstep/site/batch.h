// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/site/scheduler.h"

namespace lockstep::site {

// A job as the scheduler's queue shows it.
struct BatchJob {
  enum class State { waiting, running, ending, over };

  std::string id;
  State state = State::over;
  std::string said;      // the scheduler's own word: "PENDING", "R"
  std::string reason;    // why it waits: "Dependency", "Priority"
  std::string start;     // when it is expected to start or did start, as the scheduler writes it; often empty
  std::string end;       // likewise, by its limit
  std::string on_nodes;  // as the scheduler writes them

  bool active() const { return state != State::over; }
  bool operator==(const BatchJob&) const = default;
};

// Whom a job waits for before it may start.
struct Waits {
  enum class For { nobody, failure_of, end_of, success_of, same_name };
  For what = For::nobody;
  std::string job;  // of failure_of and end_of; of success_of one or several, with ':' in between
};

// One call of the scheduler's command each; every call gives up after 20 s.

// The words that queue the script, without a shell in between.
std::vector<std::string> submit_words(SchedulerName scheduler, const base::Path& script, const Waits& waits);

struct Submitted {
  std::string id;       // empty: refused
  std::string refusal;  // what the scheduler said
};
// From that folder, by default the script's own: there PBS puts what it has to say about the job itself (pbs_output).
Submitted submit_script(SchedulerName scheduler, const base::Path& script, const Waits& waits,
                        const base::Path& from = {});

// The file, in the folder where a job of that name was submitted, of what PBS writes itself: "job killed: mem ...".
std::string pbs_output(const std::string& name, const std::string& id);

// Those of the jobs that the scheduler still knows; nothing when it does not answer. Slurm finds them by their name as
// well, so that one of which nobody noted the number is not lost.
std::optional<std::vector<BatchJob>> find_jobs(SchedulerName scheduler, const std::string& name,
                                               const std::vector<std::string>& ids);

// How a job ended that is in the queue no more.
struct JobEnd {
  std::string words = {};      // in the scheduler's: "FAILED, JobLaunchFailure, exit code 0:53"; empty: it does not say
  bool by_hand = false;        // somebody took it out of the queue before it began
  bool out_of_memory = false;  // it used more memory than it had asked for
  int signal = 0;              // of PBS: which one ended the job's shell; 0: it ended by itself, or that is not known
  bool is_silent = false;      // the scheduler did not answer: it may, later

  bool operator==(const JobEnd&) const = default;
};
// Without words when the scheduler does not answer or has forgotten the job: Slurm does after some minutes, PBS at once
// where the site keeps no history (job_history_enable).
JobEnd how_ended(SchedulerName scheduler, const std::string& id);

// True when the scheduler took the order; jobs that are gone already are no failure.
bool cancel_jobs(SchedulerName scheduler, const std::vector<std::string>& ids);

// A waiting job will not be started on these hosts either, besides those that its script leaves out. False where the
// scheduler has no such order (PBS) or did not take it.
bool exclude_hosts(SchedulerName scheduler, const std::string& id, const std::vector<std::string>& hosts);

// When a job of this script would start (Unix seconds), asked of Slurm without submitting it; the refusal otherwise.
struct Prospect {
  std::optional<int64_t> start;
  std::string refusal;
};
Prospect ask_start(const base::Path& script);

// The parsers behind them, open for their tests.
std::vector<BatchJob> parse_squeue(std::string_view answer);    // of -o "%i|%T|%r|%S|%e|%N"
std::vector<BatchJob> parse_qstat(std::string_view answer);     // of qstat -f
JobEnd parse_scontrol(std::string_view answer);                 // of scontrol -o show job
JobEnd parse_pbs_end(std::string_view answer);                  // of qstat -x -f
Prospect parse_test_only(std::string_view said);                // of sbatch --test-only
std::string parse_job_id(SchedulerName, std::string_view out);  // "12;cluster" -> "12", "7.head\n" -> "7.head"

}  // namespace lockstep::site
