// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/document.h"

#include <gtest/gtest.h>

#include "lockstep/planning/invented_plan.h"

namespace lockstep::planning {
namespace {

TEST(PlanDocumentTest, HoldsEveryKeyThatOthersRelyOn) {
  const base::Json plan = to_json(invented_plan({"a100-80", "k40"}));
  for (const char* key :
       {"format", "job", "job_sha256", "commit", "best", "options", "assumptions", "notes", "timing"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  ASSERT_EQ(plan.at("options").size(), 2U);
  const base::Json& option = plan.at("options").items()[0];
  for (const char* key : {"machine",       "gpu",           "gpus",
                          "nodes",         "fits",          "drivable",
                          "memory",        "step_seconds",  "samples_per_second",
                          "epoch_seconds", "total_seconds", "jobs",
                          "energy_joules", "cost",          "why",
                          "basis",         "time_by_class", "host_memory",
                          "loader",        "levers",        "set",
                          "as_written"}) {
    EXPECT_TRUE(option.contains(key)) << key;
  }
  const base::Json& memory = option.at("memory");
  for (const char* key : {"peak_reserved_bytes", "peak_allocated_bytes", "by_class", "moment", "largest", "curve"}) {
    EXPECT_TRUE(memory.contains(key)) << key;
  }
  const base::Json& step = option.at("step_seconds");
  EXPECT_LT(step.at("low").as_double(), step.at("value").as_double());
  EXPECT_LT(step.at("value").as_double(), step.at("high").as_double());
  EXPECT_EQ(option.at("gpu").as_string(), "a100-80");
  EXPECT_EQ(plan.at("best").at("fastest").as_int(), 0);
  EXPECT_FALSE(plan.at("options").items()[1].at("drivable").as_bool());
  EXPECT_EQ(plan.at("options").items()[1].at("last_cuda").as_string(), "11.8");
}

TEST(PlanDocumentTest, KeepsThePeakOfTheCurve) {
  const base::Json plan = to_json(invented_plan({"a100-80"}));
  const base::Json& memory = plan.at("options").items()[0].at("memory");
  int64_t highest = 0;
  const auto& activations = memory.at("curve").at("activations").items();
  for (const auto& bytes : activations) highest = std::max(highest, bytes.as_int());
  EXPECT_EQ(highest, memory.at("by_class").at("activations").as_int());
  EXPECT_EQ(activations.size(), memory.at("curve").at("event").size());
}

TEST(PlanDocumentTest, CarriesCurvesOfTheBestOnlyWhenThereAreMany) {
  const base::Json plan = to_json(invented_plan({"all"}));
  size_t curves = 0;
  for (const auto& option : plan.at("options").items()) curves += option.at("memory").contains("curve") ? 1 : 0;
  EXPECT_GE(curves, 1U);
  EXPECT_LE(curves, 3U);
}

}  // namespace
}  // namespace lockstep::planning
