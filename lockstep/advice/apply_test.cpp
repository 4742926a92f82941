// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/invented_tracer.h"

namespace lockstep::advice {
namespace {

using testing::HasSubstr;

const char* const kJob = R"({"name": "small", "data": {"train": "synthetic", "samples": 51200},
  "model": {"name": "resnet18", "classes": 10}, "training": {"global_batch": 256, "epochs": 10}})";

spec::Project small_project(const base::Path& folder) {
  base::write_file(folder / "job.json", kJob);
  spec::Project project;
  project.name = "small";
  project.centre.name = "a centre";
  project.wanted = "a100-80";
  project.gpus = 2;
  project.lesser = {"k40"};
  project.lesser_most = 1;
  spec::Experiment experiment;
  experiment.name = "train";
  experiment.job = (folder / "job.json").string();
  experiment.runs = 2;
  experiment.seeds = 3;
  experiment.tuning_runs = 10;
  experiment.tuning_share = 0.5;
  experiment.from_month = 6;
  experiment.months = 2;  // one month in each of the first two periods
  project.experiments = {experiment};
  return project;
}

spec::Claim claim(const std::string& says, spec::ClaimKind kind, const std::string& on, int64_t gpus = 1,
                  const std::string& value = "") {
  return {says, kind, on, gpus, value};
}

class ApplyTest : public testing::Test {
 protected:
  Application work_out_here(const spec::Project& project) {
    const base::Arguments arguments;
    return work_out(project, {arguments, catalogue_, calibration_, &tracer_});
  }

  base::TemporaryFolder folder_;
  catalogue::Catalogue catalogue_ = catalogue::load_embedded();
  forecast::Calibration calibration_ = forecast::load_calibration();
  planning::InventedTracer tracer_;
};

TEST_F(ApplyTest, CountsRunsTuningMarginAndPeriods) {
  const Application application = work_out_here(small_project(folder_.path()));
  const Estimate& estimate = application.estimates.at(0);
  EXPECT_DOUBLE_EQ(estimate.full_runs, 11);
  EXPECT_DOUBLE_EQ(estimate.run_units, estimate.option.costs.gpu_hours);
  EXPECT_DOUBLE_EQ(application.units, 11 * estimate.run_units * 1.15);
  EXPECT_DOUBLE_EQ(application.smallest_units, estimate.run_units * 1.15);
  ASSERT_EQ(application.periods.size(), 2u);
  EXPECT_DOUBLE_EQ(application.periods[0], application.units / 2);
}

TEST_F(ApplyTest, MarksEachStatementWithTheNumberBehindIt) {
  spec::Project project = small_project(folder_.path());
  project.claims = {claim("K40 only supports CUDA 10", spec::ClaimKind::last_cuda, "k40", 1, "10"),
                    claim("CUDA 11 drives it", spec::ClaimKind::last_cuda, "k40", 1, "11"),
                    claim("it fits", spec::ClaimKind::fits, "a100-80"),
                    claim("it does not", spec::ClaimKind::does_not_fit, "a100-80"),
                    claim("the batch is split", spec::ClaimKind::batch_is_split, "a100-80", 4),
                    claim("the queue is long", spec::ClaimKind::not_checkable, "")};
  const auto checked = work_out_here(project).checked;
  ASSERT_EQ(checked.size(), 6u);
  EXPECT_EQ(words_of(checked[0].verdict), "false");
  EXPECT_THAT(checked[0].because, HasSubstr("11.8"));
  EXPECT_EQ(words_of(checked[1].verdict), "true");
  EXPECT_EQ(words_of(checked[2].verdict), "true");
  EXPECT_THAT(checked[2].because, HasSubstr("GB a GPU of 8"));
  EXPECT_EQ(words_of(checked[3].verdict), "false");
  EXPECT_THAT(checked[4].because, HasSubstr("each of 4 GPUs 64 samples"));
  EXPECT_EQ(words_of(checked[5].verdict), "unknown");
}

TEST_F(ApplyTest, FillsTheFieldsThatCentresAskForAndMarksTheBlanks) {
  spec::Project project = small_project(folder_.path());
  project.dataset_bytes = 5'000'000'000;
  const std::string page = to_markdown(justification(work_out_here(project)));
  for (const char* heading :
       {"The work and what it needs", "How the hours were derived", "Smallest, typical and largest job", "Scaling",
        "The machines at hand, and what each lacks", "What a centre must have", "Disk, files, transfer and checkpoints",
        "Software"}) {
    EXPECT_THAT(page, HasSubstr(base::text("\n## ", heading, "\n")));
  }
  EXPECT_THAT(page, HasSubstr("TO FILL IN: name, position, contact"));
  EXPECT_THAT(page, HasSubstr("no current CUDA drives it"));
}

TEST_F(ApplyTest, RefusesAUnitThatCannotBeCounted) {
  spec::Project project = small_project(folder_.path());
  project.centre.unit = spec::GrantUnit::core_hour;
  EXPECT_THROW(work_out_here(project), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
