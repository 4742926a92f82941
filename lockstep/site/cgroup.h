// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::site {

// The tightest memory limit above this process, in bytes: cgroup v2 and v1, every level up to the root. Nothing: no
// limit.
std::optional<uint64_t> cgroup_memory_limit();

// The tightest CPU quota above this process, in cores. Nothing: no quota.
std::optional<double> cgroup_cpu_quota();

// The path of this process in hierarchy `controller` ("" = version 2) as /proc/self/cgroup spells it; empty: none.
std::string cgroup_path(const std::string& proc_self_cgroup, const std::string& controller);

}  // namespace lockstep::site
