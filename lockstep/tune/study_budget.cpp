// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/study_budget.h"

#include <algorithm>
#include <limits>

namespace lockstep::tune {

double budget_of(const spec::Study& study) {
  double limit = std::numeric_limits<double>::infinity();
  if (study.budget.node_hours > 0) limit = study.budget.node_hours;
  if (study.budget.money > 0) limit = std::min(limit, study.budget.money / study.budget.price);
  return limit;
}

void Totals::add(const Trial& trial) {
  infeasible += trial.system_attrs.contains(kMemoryConstraint) ? 1 : 0;
  const double cost = trial.user_attrs.double_or(kSpentAttr, 0);
  node_hours += cost;
  measured += cost > 0 ? 1 : 0;
}

double Totals::promised_to(const Trial& trial) const {
  if (trial.state != TrialState::running || trial.is_paused() || trial.worker().empty()) return 0;
  const double spent = trial.user_attrs.double_or(kSpentAttr, 0);
  return std::max(0.0, trial.user_attrs.double_or(kPlannedAttr, mean()) - spent);
}

}  // namespace lockstep::tune
