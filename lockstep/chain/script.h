// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/machine.h"

namespace lockstep::chain {

// What one job of a chain asks the scheduler for.
struct Shape {
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  bool gpus = false;    // one GPU a rank
  double walltime = 0;  // seconds
  int64_t memory = 0;   // bytes of main memory on each node; 0: not asked for
  int64_t cores = 0;    // of each node; 0: by the machine

  int64_t ranks() const { return nodes * ranks_per_node; }
  bool operator==(const Shape&) const = default;
};

struct ScriptRequest {
  std::string name;     // of the job in the queue: letters, digits, '-', '_', '.'
  base::Path folder;    // where the user stood; absolute
  base::Path run;       // absolute
  base::Path job;       // absolute: the job as it was submitted; empty: `work`
  std::string program;  // this program, absolute
  std::string device;   // "cpu", "cuda"
  Shape shape;
  base::Path commands = {};  // where the scheduler's commands are; empty: not known. A PBS job may not have it on PATH
  int file_mask = -1;        // umask of who submits; -1: not known. PBS gives jobs one of its own
  std::vector<std::string> work = {};     // in place of a job: `predict ...` of a collection, `tune ...` of a study
  std::vector<std::string> command = {};  // the job runs this, and is no link of a chain
};

// What a job of this machine does not get from its scheduler, as it is here: where the commands are, the umask.
void add_surroundings(ScriptRequest& script, const spec::Machine& machine);

// What to tell a user whose job writes its output into a folder to which others can write. Empty: nothing.
std::string warn_of_open_folder(const base::Path& folder, spec::SchedulerKind scheduler);

// What a job asks for on each of its nodes.
struct NodeRequest {
  int64_t cores = 0;
  int64_t gpus = 0;
  int64_t memory = 0;  // bytes; 0: not asked for

  bool operator==(const NodeRequest&) const = default;
};
NodeRequest node_request(const Shape& shape, const spec::Machine& machine);

// The batch script of one link: directives, modules, environment, and `lockstep submit --link RUN -- COMMAND` (or
// `command` as it is) in place of the shell, so that a signal for the batch shell reaches the program. Every path and
// value is quoted. User error for what this scheduler cannot be asked for.
std::string batch_script(const ScriptRequest& request, const spec::Machine& machine);

// What the link runs: `lockstep train ... --ranks N` (of a collection `lockstep predict ...`), or srun, or mpirun with
// a container. Of a study `lockstep tune` once a node, with a trial at a time for each rank of the shape.
std::vector<std::string> work_command(const ScriptRequest& request, const spec::Machine& machine);

// "pets-3f2a1c": readable, and another folder's run of that name is another job. At most 15 characters, which is what
// the oldest PBS takes.
std::string queue_name(const base::Path& run);

// "48:00:00"; Slurm counts in minutes: up to the next one.
std::string walltime_words(double seconds, spec::SchedulerKind scheduler);

// Seconds before its end at which Slurm is to warn a job. It looks about every half minute and may be a minute early
// (its manual says so, and it was seen), so short jobs are better off without: 0.
double signal_lead(const spec::Scheduler& scheduler, double walltime);

}  // namespace lockstep::chain
