// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/planning/invented_plan.h"

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

}  // namespace
}  // namespace lockstep::planning
