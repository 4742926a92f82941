// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/memory.h"

#include <sys/statvfs.h>

#include <sstream>
#include <string>

#include "lockstep/base/text.h"
#include "lockstep/site/cgroup.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {

Memory parse_meminfo(std::string_view meminfo) {
  Memory found;
  for (const auto& line : base::split(meminfo, '\n')) {
    std::istringstream words(line);
    std::string key;
    uint64_t kibibytes = 0;
    if (!(words >> key >> kibibytes)) continue;
    if (key == "MemTotal:") found.total = kibibytes << 10;
    if (key == "MemAvailable:") found.available = kibibytes << 10;
  }
  return found;
}

Memory read_memory() {
  Memory found = parse_meminfo(kernel_text("/proc/meminfo"));
  found.group_limit = cgroup_memory_limit();
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) == 0) {
    found.shared = uint64_t{status.f_blocks} * status.f_frsize;
    found.shared_free = uint64_t{status.f_bavail} * status.f_frsize;
  }
  return found;
}

}  // namespace lockstep::site
