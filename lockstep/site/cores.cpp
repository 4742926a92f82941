// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "lockstep/site/cgroup.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {

int64_t online_cores() {
  return std::max<int64_t>(1, ::sysconf(_SC_NPROCESSORS_ONLN));
}

int64_t usable_cores() {
  int64_t cores = online_cores();
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  if (const auto quota = cgroup_cpu_quota()) cores = std::min(cores, static_cast<int64_t>(std::floor(*quota)));
  return std::max<int64_t>(1, cores);
}

int64_t cores_per_rank(int64_t cores, int64_t ranks) {
  return std::max<int64_t>(1, cores / ranks);
}

int64_t cores_per_rank() {
  return cores_per_rank(usable_cores(), read_launch().local_size);
}

std::optional<double> quota_cores(std::string_view cpu_max) {
  std::istringstream in{std::string(cpu_max)};
  double quota = 0;
  double period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace lockstep::site
