// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::site {

// Hardware threads of the machine.
int64_t online_cores();

// Those this process may use at once: CPU affinity, then the cgroup's CPU quota, rounded down, at least 1.
int64_t usable_cores();

// What one of `ranks` may use of a node's cores: its share, at least 1.
int64_t cores_per_rank(int64_t cores, int64_t ranks);
// Likewise this process of its usable cores, among the ranks that its launcher has started on this node.
int64_t cores_per_rank();

// Cores of a cgroup v2 "cpu.max" ("150000 100000" -> 1.5); nothing for "max ...".
std::optional<double> quota_cores(std::string_view cpu_max);

}  // namespace lockstep::site
