// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/invented_plan.h"
#include "lockstep/planning/invented_tracer.h"

namespace lockstep::planning {
namespace {

using testing::HasSubstr;

spec::Job small_job() {
  return spec::parse_job(base::parse_json(R"({
    "name": "small", "data": {"train": "synthetic", "samples": 1000, "image_size": 32},
    "model": {"name": "smallcnn", "classes": 10}, "training": {"global_batch": 64, "epochs": 2}})",
                                          "job.json"));
}

TEST(PlanTest, PlansAUsersRecording) {
  const Plan plan = invented_plan({"a100-80", "h200"}, {1, 4});
  ASSERT_EQ(plan.options.size(), 4U);
  EXPECT_TRUE(plan.recorded);
  EXPECT_EQ(plan.title, "invented");
  EXPECT_EQ(plan.options[0].length->steps, 1000);
  EXPECT_EQ(plan.options[1].trial.rows, 32);
  EXPECT_GT(plan.options[1].samples_per_second, 2 * plan.options[0].samples_per_second);
  EXPECT_GT(plan.options[1].trial.time->communication, 0);
}

TEST(PlanTest, CountsSamplesOfAFolderThatIsNotHereAsTheUserSays) {
  spec::Job job = small_job();
  job.data.train = "nowhere/train";
  job.data.validate = "nowhere/validate";
  job.data.samples = 0;
  const Lengths unknown = find_lengths(job, 0, 0);
  EXPECT_EQ(unknown.samples, 0);
  ASSERT_EQ(unknown.notes.size(), 2U);
  EXPECT_THAT(unknown.notes[0], HasSubstr("--samples N"));
  EXPECT_EQ(find_lengths(job, 5000, 0).samples, 5000);
  job.data.samples = 700;
  EXPECT_EQ(find_lengths(job, 0, 50).samples, 700);
  EXPECT_EQ(find_lengths(job, 0, 50).validation_samples, 50);
  job.model.classes = 0;
  EXPECT_THROW(find_lengths(job, 0, 0), base::Error);
}

forecast::PhaseWork work_of(const spec::Job& job) {
  const auto catalogue = catalogue::load_embedded();
  InventedTracer tracer;
  PlanRequest request;
  request.job = job;
  request.lengths.samples = job.data.samples;
  request.tracer = &tracer;
  request.machine_options =
      find_machine_options({.on = {"h200"}, .gpus = {1}, .here = [] { return Here{}; }}, catalogue);
  request.search = false;
  return make_plan(request, catalogue, forecast::load_calibration()).workload.whole.front();
}

TEST(PlanTest, KnowsWhetherTheRunHasACudaGraphAndWhatRunsBesideIt) {
  spec::Job job = small_job();  // 15 full batches of 64 and one of 40, twice
  EXPECT_TRUE(work_of(job).graph);
  EXPECT_EQ(work_of(job).odd, 40);
  job.data.samples = 960;
  EXPECT_EQ(work_of(job).odd, 0);
  job.data.samples = 300;  // 4 full ones
  EXPECT_FALSE(work_of(job).graph);
  EXPECT_EQ(work_of(job).odd, 0);
  job.data.samples = 0;
  EXPECT_TRUE(work_of(job).graph) << "as long as nobody knows better";
}

TEST(PlanTest, CountsTheSecondLargestCanvasBesideTheGraphOfAnother) {
  spec::Job job = small_job();
  job.task = spec::Task::instances;
  job.model.name = "maskrcnn_resnet18_fpn";
  job.data.image_size = spec::ImageSize(128, 160);
  job.data.samples = 960;
  job.training.global_batch = 10;
  EXPECT_EQ(work_of(job).odd, 0);
  job.instances.canvases = {"64x128", "96x128"};
  EXPECT_EQ(work_of(job).odd, 6);  // 96 x 128 of 128 x 160 pixels
}

}  // namespace
}  // namespace lockstep::planning
