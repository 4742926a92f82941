// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/site/scheduler.h"

namespace lockstep::site {

// A partition of a Slurm cluster or a queue of PBS, one row a kind of node in it. What a login node has itself says
// nothing about these.
struct Partition {
  std::string name;
  bool is_default = false;
  std::optional<int64_t> limit_seconds;  // nothing: no limit
  int64_t nodes = 0;
  int64_t cpus = 0;        // a node
  int64_t memory_mib = 0;  // a node
  int64_t gpus = 0;        // a node
  std::string gpu_type;    // as the site names it: "a100"; often empty
  bool enabled = true;     // takes jobs
  bool started = true;     // starts them

  bool operator==(const Partition&) const = default;
};

// Asks `sinfo`, or PBS's `qstat` and `pbsnodes`; none when they are not there or do not answer in 3 s each. On a Slurm
// cluster the commands of PBS are Slurm's own: for `pbs` there are none then.
std::vector<Partition> read_partitions(SchedulerName scheduler);

// The answer to `sinfo -h -o "%P|%l|%D|%c|%m|%G"`.
std::vector<Partition> parse_sinfo(std::string_view answer);

// The answers to `qstat -Qf`, `qstat -Bf` and `pbsnodes -av`. Vnodes of one host count as one node. Nodes that are down
// or offline count too: they come back. A queue of unknown nodes has a row with 0 of them.
std::vector<Partition> parse_pbs_queues(std::string_view queues, std::string_view server, std::string_view nodes);

}  // namespace lockstep::site
