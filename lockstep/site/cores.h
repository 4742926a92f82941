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

// Cores of a cgroup v2 "cpu.max" ("150000 100000" -> 1.5); nothing for "max ...".
std::optional<double> quota_cores(std::string_view cpu_max);

}  // namespace lockstep::site
