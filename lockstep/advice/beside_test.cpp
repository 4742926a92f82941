// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/beside.h"

#include <gtest/gtest.h>

#include "lockstep/advice/cpu_or_gpu.h"
#include "lockstep/base/error.h"
#include "lockstep/planning/fastest.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::advice {
namespace {

TEST(BesideTest, ComparesAFigureWithTheJobAsWritten) {
  const planning::Plan plan = planning::invented_plan({"i7-8700", "a100-80"});
  Advice advice = cpu_or_gpu(plan, {});
  add_beside({"a notebook", {{"on a laptop", "i7-8700", 100, 0, "it was older"}}}, plan, advice);
  const auto& row = advice.document.at("beside").items().front();
  EXPECT_DOUBLE_EQ(row.at("theirs_seconds").as_double(), 100);
  EXPECT_DOUBLE_EQ(row.at("ours_seconds").as_double(), planning::run_seconds(plan.options[0]));
  EXPECT_THROW(add_beside({"", {{"x", "i7-8701", 1, 0, ""}}}, plan, advice), base::Error);
}

TEST(BesideTest, ComparesMemoryByJob) {
  Advice advice;
  const Beside beside{"a page", {{"the heuristic", "a.json", 0, 6e9, ""}}};
  add_memory_beside(beside, {{"a.json", 2e9}}, advice);
  EXPECT_NE(to_text(advice.paper).find("3.00"), std::string::npos);
  EXPECT_THROW(add_memory_beside(beside, {{"b.json", 2e9}}, advice), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
