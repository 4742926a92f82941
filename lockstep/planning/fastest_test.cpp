// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/fastest.h"

#include <gtest/gtest.h>

#include "lockstep/planning/invented_plan.h"

namespace lockstep::planning {
namespace {

TEST(FastestOfEachMachineOptionTest, TakesAnOptionOfTheSearchOnlyWhereItEndsAndIsFaster) {
  Plan plan = invented_plan({"t4", "v100-16"});
  ASSERT_EQ(plan.options.size(), 2U);
  forecast::Option faster = plan.options[0];
  faster.as_written = false;
  faster.length->total /= 2;
  forecast::Option never = plan.options[1];
  never.as_written = false;
  never.length->total /= 2;
  never.length->jobs = 0;
  plan.options = {plan.options[0], faster, plan.options[1], never};
  const auto best = fastest_of_each_machine_option(plan);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0], &plan.options[1]);
  EXPECT_EQ(best[1], &plan.options[2]);
}

}  // namespace
}  // namespace lockstep::planning
