// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/submit/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::verbs {
namespace {

using testing::HasSubstr;

const catalogue::Catalogue& shelf() {
  static const catalogue::Catalogue catalogue = catalogue::load_embedded();
  return catalogue;
}

SubmitRequest request_on(const std::string& machine, const std::vector<std::string>& sites = {}) {
  SubmitRequest request;
  request.job = spec::parse_job(base::parse_json(R"({"name": "pets", "data": {"train": "synthetic", "samples": 100},
    "model": {"name": "resnet18", "classes": 4}, "training": {"global_batch": 40, "epochs": 1}})",
                                                 "job.json"));
  request.machine = find_machine(machine, sites, shelf());
  request.run = "/no/such/run/pets";
  request.folder = "/no/such/run";
  request.program = "/opt/lockstep";
  request.plan = false;
  request.dry_run = true;
  return request;
}

std::string complaint(const SubmitRequest& request) {
  try {
    prepare(request, shelf());
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(PrepareTest, DecidesShapeAndLengthOfAChain) {
  SubmitRequest request = request_on("leonardo");
  request.nodes = {3};
  request.hours = "3=60";
  const Prepared prepared = prepare(request, shelf());
  EXPECT_EQ(prepared.choice().script.shape,
            (Shape{.nodes = 3, .ranks_per_node = 4, .gpus = true, .walltime = 24 * 3600}));
  EXPECT_EQ(prepared.terms.planned_links, 3);
  EXPECT_EQ(prepared.terms.max_links, 8);
  EXPECT_EQ(prepared.queue_now, 1);
  request.machine.submit_from = spec::SubmitFrom::login;
  EXPECT_EQ(prepare(request, shelf()).queue_now, 5);  // two to spare
  request.links = 4;
  EXPECT_EQ(prepare(request, shelf()).queue_now, 4);
}

TEST(PrepareTest, AsksForNoMoreTimeThanTheRunNeeds) {
  SubmitRequest request = request_on("leonardo");
  request.hours = "1=2";
  EXPECT_EQ(prepare(request, shelf()).choice().script.shape.walltime, 3 * 3600 + 600);
  request.walltime = 7200;
  EXPECT_EQ(prepare(request, shelf()).choice().script.shape.walltime, 7200);
}

TEST(PrepareTest, NamesWhatIsMissing) {
  EXPECT_THAT(complaint(request_on("minotauro")), HasSubstr("minotauro states no scheduler"));
  EXPECT_THAT(complaint(request_on("minotauro", {"scheduler.kind=slurm"})), HasSubstr("which no current CUDA drives"));
  EXPECT_THAT(complaint(request_on("marenostrum5")), HasSubstr("how long may a job run?"));
  SubmitRequest request = request_on("leonardo");
  request.walltime = 48 * 3600;
  EXPECT_THAT(complaint(request), HasSubstr("leonardo lets a job run for 24:00:00"));
  request.walltime = 30;
  EXPECT_THAT(complaint(request), HasSubstr("too short"));
  request.walltime = 0;
  request.nodes = {4000};
  EXPECT_THAT(complaint(request), HasSubstr("gives a job 3456 at most"));
  request.nodes = {1, 2};
  EXPECT_THAT(complaint(request), HasSubstr("--earliest chooses among them"));
  request.nodes = {1};
  request.machine.submit_from = spec::SubmitFrom::login;
  EXPECT_THAT(complaint(request), HasSubstr("how many links"));
  SubmitRequest pbs = request_on("leonardo", {"scheduler.kind=pbs"});
  pbs.earliest = true;
  EXPECT_THAT(complaint(pbs), HasSubstr("PBS cannot be asked"));
  EXPECT_THROW(find_machine("leonrado", {}, shelf()), base::Error);
}

TEST(PrepareTest, RefusesTheRunFolderOfAnotherJob) {
  const base::TemporaryFolder folder;
  SubmitRequest request = request_on("leonardo");
  request.run = folder.path();
  spec::Job before = request.job;
  before.limits.walltime = 60;  // how it is run may change
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_EQ(complaint(request), "");
  before.training.seed = 7;
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_THAT(complaint(request), HasSubstr("is the run of another job: training.seed was 7, now 1"));
  before = request.job;
  before.model.name = "resnet50";
  base::write_json(folder.path() / "job.json", spec::to_json(before));
  EXPECT_THAT(complaint(request), HasSubstr("model.name was \"resnet50\", now \"resnet18\""));
}

TEST(PrepareTest, RefusesARunWhoseChainLives) {
  const base::TemporaryFolder folder;
  site::FakeScheduler slurm;
  slurm.install("sbatch", "sbatch: Job 3 to start at 2026-11-15T16:40:00 using 2 processors");
  slurm.install("squeue", "11|RUNNING|None|N/A|N/A|n1");
  SubmitRequest request = request_on("leonardo");
  request.run = folder.path();
  request.dry_run = false;
  ChainRecord(folder.path()).open({});
  EXPECT_THAT(complaint(request), HasSubstr("its chain lives, job 11 is RUNNING"));
}

TEST(PrepareTest, ChoosesTheShapeThatEndsFirst) {
  std::vector<Candidate> candidates(3);
  candidates[0].start = 100;
  candidates[0].planned.seconds = 1000;
  candidates[1].start = 600;
  candidates[1].planned.seconds = 400;
  candidates[2].refusal = "Requested node configuration is not available";
  EXPECT_EQ(ends_first(candidates), 1u);
  candidates.erase(candidates.begin(), candidates.begin() + 2);
  EXPECT_THROW(ends_first(candidates), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs
