// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::workflow {
namespace {

using testing::HasSubstr;

spec::Workflow workflow_of(const std::string& stages) {
  return spec::parse_workflow(base::parse_json("{\"stages\": {" + stages + "}}", "workflow.json"));
}

// Station KATX of the Cray team: download 13 h, preprocessing 4 h, training 24 h on 8 P100, inference 10 s; samples per
// second at 4 a device on 1, 2, 4, 8 and 16 of them.
spec::Workflow radar() {
  return workflow_of(R"(
      "download": {"command": ["d"], "outputs": ["raw"], "expected": "13 h"},
      "prep": {"command": ["p"], "inputs": ["raw"], "outputs": ["data"], "expected": "4 h"},
      "train": {"command": ["t"], "inputs": ["data"], "outputs": ["w"], "expected": "24 h", "resources": {"gpus": 8},
                "scaling": {"1": 25.8, "2": 51.6, "4": 102.7, "8": 205.4, "16": 410.5}},
      "infer": {"command": ["i"], "inputs": ["w"], "outputs": ["o"], "expected": "10 s"})");
}

TEST(TimelineTest, TheSlidesSumAndTheConsistentOne) {
  EXPECT_NEAR(100 * amdahl_sum(.58, 16 * .994), 45.65, .005);      // as it stands on the slide
  EXPECT_NEAR(100 * amdahl_sum(.58, 410.5 / 205.4), 71.0, .05);    // the 24 h were on 8 GPUs
  EXPECT_NEAR(100 * amdahl_sum(24. / 41, 16 * .994), 45.14, .06);  // from the hours
  EXPECT_NEAR(100 * amdahl_sum(24. / 41, 410.5 / 205.4), 70.75, .05);
}

TEST(TimelineTest, TheRadarWorkflow) {
  const Timeline timeline = make_timeline(radar(), {"absent"});
  EXPECT_EQ(timeline.whole, 41 * 3600 + 10);
  EXPECT_NEAR(timeline.stages[2].share, .585, .001);
  EXPECT_EQ(timeline.stages[2].start, 17 * 3600);
  const Amdahl amdahl = spread_stage(radar(), timeline);
  EXPECT_EQ(amdahl.stage, "train");
  EXPECT_EQ(amdahl.gpus, 8);
  ASSERT_EQ(amdahl.spreads.size(), 4U);  // 1, 2, 4, 16
  const Spread& sixteen = amdahl.spreads[3];
  EXPECT_NEAR(100 * sixteen.left, 70.75, .02);
  EXPECT_NEAR(sixteen.seconds / 3600, 29.0, .02);
  EXPECT_NEAR(100 * sixteen.as_if_one_gpu, 45.14, .03);
  EXPECT_EQ(amdahl.part, .58);
  EXPECT_NEAR(100 * amdahl.rounded[3], 71.0, .05);
  EXPECT_NEAR(100 * amdahl.rounded_as_if_one[3], 45.65, .01);
  EXPECT_EQ(amdahl.freed[0].stage, "train");
  EXPECT_NEAR(100 * amdahl.freed[0].left, 41.5, .05);
  EXPECT_NEAR(amdahl.freed[0].speedup, 2.41, .005);
  EXPECT_EQ(amdahl.next, "download");
  EXPECT_THAT(to_text(amdahl), HasSubstr("45.65 %"));
  EXPECT_THAT(to_text(timeline), HasSubstr("41 h 00 min"));
}

TEST(TimelineTest, WhatRunsAtTheSameTimeDoesNotAddUp) {
  const spec::Workflow workflow = workflow_of(R"(
      "a": {"command": ["x"], "outputs": ["a"], "expected": "10 s"},
      "long": {"command": ["x"], "inputs": ["a"], "expected": "30 s"},
      "short": {"command": ["x"], "inputs": ["a"], "expected": "20 s"},
      "silent": {"command": ["x"]})");
  const Timeline timeline = make_timeline(workflow, {"absent"});
  EXPECT_EQ(timeline.whole, 40);
  EXPECT_TRUE(timeline.stages[1].critical);
  EXPECT_FALSE(timeline.stages[2].critical);
  EXPECT_EQ(timeline.unknown, std::vector<std::string>{"silent"});
  const Amdahl amdahl = spread_stage(workflow, timeline);
  EXPECT_EQ(amdahl.stage, "");
  EXPECT_EQ(amdahl.next, "a");  // without `long` the other branch still takes 20 s: both leave 30 s, and a comes first
}

TEST(TimelineTest, WithoutAMeasuredThroughputNothingIsLost) {
  const spec::Workflow workflow = workflow_of(R"("t": {"train": ["j", "--run", "r"], "expected": "8 h"})");
  const Amdahl amdahl = spread_stage(workflow, make_timeline(workflow, {"absent"}), {4});
  EXPECT_TRUE(amdahl.ideal);
  ASSERT_EQ(amdahl.spreads.size(), 1U);
  EXPECT_DOUBLE_EQ(amdahl.spreads[0].left, .25);
}

}  // namespace
}  // namespace lockstep::workflow
