// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/planning/invented_plan.h"

namespace lockstep::planning {
namespace {

using testing::HasSubstr;

TEST(PlanMarkdownTest, HoldsTheSameFactsAsThePage) {
  const std::string page = to_markdown(invented_plan({"a100-80", "k40"}));
  for (const char* wanted :
       {"# Plan: invented", "| a100-80 | yes |", "## Memory on a100-80", "| activations | 1.92 GB |",
        "## Time of a step on a100-80", "## Why", "## Money", "SkyPilot catalogue", "## Assumed"}) {
    EXPECT_THAT(page, HasSubstr(wanted));
  }
}

TEST(PlanMarkdownTest, LetsNoNameEndACell) {
  Plan plan = invented_plan({"a100-80"});
  plan.options[0].machine_option.name = "a|b<img>";
  EXPECT_THAT(to_markdown(plan), HasSubstr("| a\\|b\\<img> | yes |"));
}

}  // namespace
}  // namespace lockstep::planning
