// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/submit/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs {
namespace {

TEST(PlannedTest, ReadsTheShapesOfAPlan) {
  const Planned planned = shapes_of(base::parse_json(R"({"options": [
    {"nodes": 1, "feasible": false, "total_seconds": null, "jobs": 0, "why": ["a walltime of 60 s ends first"]},
    {"nodes": 2, "feasible": true, "total_seconds": 7200, "jobs": 2, "why": []},
    {"nodes": 2, "feasible": true, "total_seconds": 5400, "jobs": 2, "why": []}]})",
                                                     "plan.json"));
  ASSERT_EQ(planned.shapes.size(), 2u);
  EXPECT_EQ(planned.of(1)->why_not, "a walltime of 60 s ends first");
  EXPECT_EQ(planned.of(2)->seconds, 5400);
  EXPECT_EQ(planned.of(2)->jobs, 2);
  EXPECT_EQ(planned.of(4), nullptr);
}

TEST(PlannedTest, TakesTheUsersHours) {
  const Planned planned = parse_hours("1=2.5,4=0.5", 3600);
  EXPECT_EQ(planned.of(1)->seconds, 9000);
  EXPECT_EQ(planned.of(1)->jobs, 3);
  EXPECT_EQ(planned.of(4)->jobs, 1);
  for (const char* bad : {"", "2", "x=1", "1=", "1=0", "1=nan", "1=2;2=3"}) {
    EXPECT_THROW(parse_hours(bad, 0), base::Error) << bad;
  }
}

TEST(PlannedTest, TellsWhyThereIsNoPlan) {
  PlanQuestion question;
  question.program = "/bin/false";
  question.machine.name = "site";
  const Planned nothing = ask_plan(question);
  EXPECT_TRUE(nothing.shapes.empty());
  question.program = "/no/such/program";
  EXPECT_THAT(ask_plan(question).why_not, testing::HasSubstr("did not answer"));
}

}  // namespace
}  // namespace lockstep::verbs
