// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/workflow/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"

namespace lockstep::verbs::workflow {
namespace {

using lockstep::workflow::StagePlan;
using testing::HasSubstr;

TEST(WorkflowReportTest, ShowsStagesTimelineAndSum) {
  const base::TemporaryFolder folder;
  const lockstep::workflow::StatePaths paths{folder.path()};
  const spec::Workflow workflow = spec::load_workflow("examples/radar/workflow.json");
  std::vector<StagePlan> plans;
  for (size_t i = 0; i < workflow.stages.size(); ++i) plans.push_back({i, StagePlan::What::runs, "never ran"});
  const auto states = stage_states(workflow, paths, plans, std::nullopt);
  EXPECT_THAT(states_text(workflow, states), HasSubstr("out of date  never ran"));
  const auto timeline = lockstep::workflow::make_timeline(workflow, paths);
  const auto data = gather_workflow(workflow, states, timeline, lockstep::workflow::spread_stage(workflow, timeline));
  EXPECT_EQ(data.at("stages").items()[2].at("needs").items()[0].as_string(), "prep");
  EXPECT_EQ(data.at("timeline").at("whole_seconds").as_double(), 41 * 3600 + 10);
  const std::string page = render_workflow(data);
  EXPECT_THAT(page, HasSubstr("katx - lockstep workflow"));
  EXPECT_THAT(page, HasSubstr("\"rounded_as_if_one_gpu\":0.4564"));
}

TEST(WorkflowReportTest, WhatStandsInAQueueComesFirst) {
  const base::TemporaryFolder folder;
  spec::Workflow workflow = spec::parse_workflow(base::parse_json(R"({"stages": {"a": {"command": ["x"]}}})", "w"));
  lockstep::workflow::QueueState queue;
  site::BatchJob job;
  job.id = "7";
  job.said = "PENDING";
  job.reason = "Priority";
  job.state = site::BatchJob::State::waiting;
  queue.jobs.push_back({"a", "7", job});
  const auto states = stage_states(workflow, {folder.path()}, {{0, StagePlan::What::runs, "never ran"}}, queue);
  EXPECT_EQ(states[0].word, "waits");
  EXPECT_EQ(states[0].why, "job 7 is PENDING (Priority)");
}

}  // namespace
}  // namespace lockstep::verbs::workflow
