// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/spec/study.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {

inline constexpr const char* kMemoryConstraint = "constraints:memory";  // system: it cannot fit, and was never started
inline constexpr const char* kPlannedAttr = "planned_node_hours";       // user: of the whole trial
inline constexpr const char* kSpentAttr = "node_hours";                 // user: of its sessions that ended

// In node-hours; infinite: the study has none.
double budget_of(const spec::Study& study);

// What trials have cost so far, and what those under way may still cost.
struct Totals {
  int64_t infeasible = 0;
  int64_t measured = 0;
  double node_hours = 0;

  void add(const Trial& trial);
  double mean() const { return measured > 0 ? node_hours / static_cast<double>(measured) : 0; }
  // What the trial may still cost: what it is planned to, or the mean; 0 when nobody works on it. A paused one is
  // asked about when it is promoted.
  double promised_to(const Trial& trial) const;
};

}  // namespace lockstep::tune
