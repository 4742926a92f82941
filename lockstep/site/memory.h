// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::site {

// Bytes of main memory.
struct Memory {
  uint64_t total = 0;
  uint64_t available = 0;               // the kernel's own estimate
  std::optional<uint64_t> group_limit;  // the cgroup's (a job's, a container's)
  std::optional<uint64_t> shared;       // size of /dev/shm; nothing: there is none
  uint64_t shared_free = 0;

  uint64_t usable() const { return group_limit && *group_limit < total ? *group_limit : total; }
};

Memory read_memory();

// `total` and `available` out of /proc/meminfo.
Memory parse_meminfo(std::string_view meminfo);

}  // namespace lockstep::site
