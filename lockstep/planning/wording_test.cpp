// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/wording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/planning/invented_plan.h"

namespace lockstep::planning {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(PlanWordingTest, SaysWhatMattersInOneSentence) {
  const Plan plan = invented_plan({"a100-80", "h200"});
  EXPECT_THAT(headline(plan), StartsWith("fastest: h200 ("));
  EXPECT_THAT(headline(plan), HasSubstr("; cheapest: "));
  EXPECT_THAT(headline(plan), HasSubstr("; smallest: a100-80"));
  EXPECT_EQ(description(plan), "invented, 25M parameters, fp32, batch 32; 1,000 steps");
  EXPECT_TRUE(undriven(plan).empty());
}

TEST(PlanWordingTest, SaysByHowMuchItFitsNowhere) {
  const Plan plan = invented_plan({"quadro-p2000"}, {1});
  Plan nowhere = plan;
  nowhere.options[0].trial.fits = false;
  nowhere.best = {};
  EXPECT_THAT(headline(nowhere), StartsWith("fits nowhere of these: it needs "));
}

TEST(PlanWordingTest, GroupsGpusThatCannotBeDriven) {
  const auto lines = undriven(invented_plan({"k40", "k80", "mi210"}));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "mi210: CUDA does not drive GPUs of AMD; planned only");
  EXPECT_EQ(lines[1], "k40, k80: no current CUDA drives it (last: 11.8)");
}

TEST(PlanWordingTest, NamesMachineOptionsAndChanges) {
  Plan plan = invented_plan({"minotauro", "a100-80"}, {4});
  EXPECT_EQ(label_of(plan.options[0]), "minotauro, 4 x k80");
  EXPECT_EQ(label_of(plan.options[1]), "4 x a100-80");
  forecast::Option& option = plan.options[0];
  EXPECT_EQ(changes_text(option), "");
  option.levers = {"bf16", {"a", "b"}, 16};
  option.changes = forecast::list_changes({"fp32", {}, 0}, option.levers);
  EXPECT_EQ(changes_text(option), "bf16, micro-batch 16, recompute 2 blocks");
}

}  // namespace
}  // namespace lockstep::planning
