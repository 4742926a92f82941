// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/tune/cost.h"

#include <gtest/gtest.h>

namespace lockstep::verbs::tune {
namespace {

spec::Plan plan_of(int64_t gpus, int64_t memory, bool fits) {
  spec::Plan plan;
  spec::PlanOption option;
  option.gpus = gpus;
  option.memory.total = memory;
  option.host_memory.total = 2000;
  option.fits = fits;
  option.total_seconds = 100;
  plan.options.push_back(option);
  return plan;
}

TEST(CostTest, ATrialHasItsShareOfTheNode) {
  EXPECT_TRUE(cost_of(plan_of(0, 4000, true), {0, 2, 10000}).feasible);
  EXPECT_EQ(cost_of(plan_of(0, 4000, true), {0, 2, 10000}).seconds, 200);
  const auto none = cost_of(plan_of(0, 6000, true), {0, 2, 10000});
  EXPECT_FALSE(none.feasible);
  EXPECT_EQ(none.why_not, "it needs 6 kB, its share of the node is 5 kB");
  EXPECT_FALSE(cost_of(plan_of(0, 400, false), {0, 1, 10000}).feasible);
}

TEST(CostTest, GpusAreNotShared) {
  EXPECT_EQ(cost_of(plan_of(2, 80000, true), {2, 4, 10000}).seconds, 100);
  EXPECT_TRUE(cost_of(plan_of(2, 80000, true), {1, 4, 10000}).feasible);  // not planned
}

}  // namespace
}  // namespace lockstep::verbs::tune
