// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/advice/buy.h"
#include "lockstep/advice/paper.h"
#include "lockstep/planning/plan.h"

namespace lockstep::advice {

struct BuyTerms {
  Money budget = {};
  std::vector<double> years = {3, 5};
  double hours_per_week = 40;  // at full power
  std::vector<CpuLoad> loads = {};
};

struct PlannedJob {
  std::string file;
  planning::Plan plan;
  std::vector<JobTime> times;  // one for each build
};

// A build and how long it takes for the list.
struct RatedBuild {
  Build build;
  size_t index = 0;  // of its JobTimes
  double gpu_hours = 0;
  double cpu_hours = 0;
  std::vector<std::string> too_large = {};  // jobs that do not fit on a GPU

  double hours() const { return gpu_hours + cpu_hours; }
};

// Everything that the advice to buy is written from.
struct Purchase {
  BuyTerms terms;
  const std::vector<PlannedJob>& jobs;
  std::vector<RatedBuild> order;  // within the budget, best first; not empty
  std::optional<RatedBuild> against;
  BuildNeeds needs;
  BuildRules rules;
};

Advice buy_advice(const Purchase& purchase);

}  // namespace lockstep::advice
