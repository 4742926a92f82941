// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

// A partition of a Slurm cluster, one row a kind of node in it. What a login node has itself says nothing about these.
struct Partition {
  std::string name;
  bool is_default = false;
  std::optional<int64_t> limit_seconds;  // nothing: no limit
  int64_t nodes = 0;
  int64_t cpus = 0;        // a node
  int64_t memory_mib = 0;  // a node
  int64_t gpus = 0;        // a node
  std::string gpu_type;    // as the site names it: "a100"; often empty

  bool operator==(const Partition&) const = default;
};

// Asks `sinfo`; none when it is not there or does not answer in 3 s.
std::vector<Partition> read_partitions();

// The answer to `sinfo -h -o "%P|%l|%D|%c|%m|%G"`.
std::vector<Partition> parse_sinfo(std::string_view answer);

}  // namespace lockstep::site
