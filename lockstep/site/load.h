// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace lockstep::site {

// Clock ticks of one hardware thread since the machine was started. What was given to processes with a nice value does
// not count as busy: they step aside.
struct CoreTicks {
  int64_t busy = 0;
  int64_t all = 0;

  bool operator==(const CoreTicks&) const = default;
};
// By its number, from the text of /proc/stat; lines that are no core's are passed over.
std::map<int64_t, CoreTicks> parse_core_ticks(std::string_view proc_stat);

// How many of the cores in both were busy between the two, as a number with a fraction.
double busy_between(const std::map<int64_t, CoreTicks>& before, const std::map<int64_t, CoreTicks>& after);

// How many of the cores that this process may use others keep busy. Looks for a sixth of a second, so ask before
// anything is computed, and once. Where a launcher has started several ranks on this node they would see each other:
// 0, unless whoever started them has looked (pass_busy_cores_on). LOCKSTEP_BUSY_CORES, a number, stands instead of
// looking.
double busy_cores();
// Looks, and tells the processes that this one starts.
void pass_busy_cores_on();

constexpr const char* kBusyCoresVariable = "LOCKSTEP_BUSY_CORES";

}  // namespace lockstep::site
