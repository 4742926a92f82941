// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/claims.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

TEST(ClaimsTest, FindTheOptionsOfAMachineOption) {
  const planning::Plan plan = planning::invented_plan({"a100-80", "k40"}, {1, 2});
  const Tried tried = tried_on(plan, "k40", 2);
  EXPECT_EQ(tried.written->machine_option.gpus, 2);
  EXPECT_EQ(tried.written->machine_option.name, "k40");
  EXPECT_EQ(tried.feasible(), tried.written);
  EXPECT_THROW(tried_on(plan, "k40", 3), base::Error);
}

TEST(ClaimsTest, CallAFalseStatementFalse) {
  const planning::Plan plan = planning::invented_plan({"a100-80"});
  const auto checked = check_claims({{"it cannot run", spec::ClaimKind::does_not_fit, "a100-80", 1, ""}}, plan);
  EXPECT_EQ(words_of(checked.at(0).verdict), "false");
}

}  // namespace
}  // namespace lockstep::advice
