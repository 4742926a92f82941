// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::site {

enum class SchedulerName { none, slurm, pbs };

const char* name_of(SchedulerName name);  // "none", "slurm", "pbs"

// What the batch system says about this process. This file is the only reader of SLURM_* and PBS_* variables.
struct Scheduler {
  SchedulerName name = SchedulerName::none;
  bool commands = false;    // its submit command is on PATH
  std::string job_id;       // empty: outside any allocation
  std::string partition;    // or queue, of the allocation
  std::string node_list;    // as the scheduler writes it; for PBS the node file
  int64_t nodes = 0;        // of the allocation; 0: not said
  int64_t tasks = 0;        // of the step or job; 0: not said
  int64_t restarts = 0;     // how often the scheduler has started this job again
  std::string submit_dir;   // where the job was submitted
  std::string submit_path;  // PATH of who submitted it (PBS)

  bool in_allocation() const { return !job_id.empty(); }
  // The commands are here and no allocation is: other people share this machine.
  bool login_node() const { return commands && !in_allocation(); }
  bool operator==(const Scheduler&) const = default;
};

Scheduler read_scheduler();

// Set by `submit --link` for what it runs: when the job ends (Unix seconds). Schedulers need not answer on every node.
constexpr const char* kJobEndVariable = "LOCKSTEP_JOB_END";

// Seconds until the scheduler ends this job, asked once a call: an end-time variable, else `squeue` or `qstat -f`.
// Nothing outside an allocation, without a limit, or when the scheduler does not answer within 5 s.
std::optional<std::chrono::seconds> seconds_left();

// The folder of this job on its node's own disk where the site has a variable of its own for it ($PBS_JOBFS); empty: it
// has not, and $TMPDIR is all there is.
std::string job_scratch();

// The parsers behind seconds_left(), open for their tests: `now` is seconds since 1970.
std::optional<std::chrono::seconds> left_by_squeue(std::string_view answer);  // "1-02:03:04", "UNLIMITED"
std::optional<std::chrono::seconds> left_by_qstat(std::string_view answer, int64_t now);

// The line, ready for a shell, that runs `lockstep <verb> <arguments>` on a node of its own under this scheduler.
// REQUIRES: the arguments are quoted (shell_words).
std::string submit_line(SchedulerName name, std::string_view verb, std::string_view arguments,
                        std::chrono::seconds walltime);

}  // namespace lockstep::site
