// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/plan/beside.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/verbs/plan/cpu_or_gpu.h"
#include "lockstep/verbs/plan/fastest.h"
#include "lockstep/verbs/plan/invented_plan.h"

namespace lockstep::verbs {
namespace {

TEST(BesideTest, ComparesAFigureWithTheJobAsWritten) {
  const Plan plan = invented_plan({"i7-8700", "a100-80"});
  Advice advice = cpu_or_gpu(plan, {});
  add_beside({"a notebook", {{"on a laptop", "i7-8700", 100, "it was older"}}}, plan, advice);
  const auto& row = advice.document.at("beside").items().front();
  EXPECT_DOUBLE_EQ(row.at("theirs_seconds").as_double(), 100);
  EXPECT_DOUBLE_EQ(row.at("ours_seconds").as_double(), run_seconds(plan.options[0]));
  EXPECT_THROW(add_beside({"", {{"x", "i7-8701", 1, ""}}}, plan, advice), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs
