// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/load.h"

#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/kernel_file.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

constexpr std::chrono::milliseconds kLook{160};  // 16 ticks: a core that is half busy is told from an idle one

// Those of the cores that this process may run on.
std::map<int64_t, CoreTicks> usable_ticks() {
  std::map<int64_t, CoreTicks> ticks = parse_core_ticks(kernel_text("/proc/stat"));
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return ticks;
  std::erase_if(ticks, [&](const auto& core) { return core.first >= CPU_SETSIZE || !CPU_ISSET(core.first, &allowed); });
  return ticks;
}

double stated_busy_cores(const char* words) {
  char* end = nullptr;
  const double cores = std::strtod(words, &end);
  if (end != words && *end == '\0' && cores >= 0) return cores;
  throw base::Error(base::Blame::user, base::text(kBusyCoresVariable, "=", words, " is no number of cores"),
                    base::text(kBusyCoresVariable, "=0: nobody else computes here"));
}

}  // namespace

std::map<int64_t, CoreTicks> parse_core_ticks(std::string_view proc_stat) {
  std::map<int64_t, CoreTicks> cores;
  std::istringstream lines{std::string(proc_stat)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;  // "cpu ": all of them together
    std::istringstream words(line.substr(3));
    int64_t core = 0, user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft = 0, stolen = 0;
    if (!(words >> core >> user >> nice >> system >> idle >> waiting >> interrupts >> soft >> stolen)) continue;
    const int64_t busy = user + system + interrupts + soft + stolen;
    cores[core] = {busy, busy + nice + idle + waiting};
  }
  return cores;
}

double busy_between(const std::map<int64_t, CoreTicks>& before, const std::map<int64_t, CoreTicks>& after) {
  double busy = 0;
  for (const auto& [core, now] : after) {
    const auto then = before.find(core);
    if (then == before.end() || now.all <= then->second.all) continue;
    busy += static_cast<double>(now.busy - then->second.busy) / static_cast<double>(now.all - then->second.all);
  }
  return busy;
}

double busy_cores() {
  if (const char* stated = std::getenv(kBusyCoresVariable)) return stated_busy_cores(stated);
  if (read_launch().local_size > 1) return 0;
  const auto before = usable_ticks();
  std::this_thread::sleep_for(kLook);
  return busy_between(before, usable_ticks());
}

void pass_busy_cores_on() {
  ::setenv(kBusyCoresVariable, base::text(busy_cores()).c_str(), 1);
}

}  // namespace lockstep::site
