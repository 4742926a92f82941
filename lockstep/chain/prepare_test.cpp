// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/small_request.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::chain {
namespace {

using testing::HasSubstr;

std::string complaint(const SubmitRequest& request) {
  try {
    prepare(request, shipped_catalogue());
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(PrepareTest, DecidesShapeAndLengthOfAChain) {
  SubmitRequest request = request_on("leonardo");
  request.nodes = {3};
  request.hours = "3=60";
  const Prepared prepared = prepare(request, shipped_catalogue());
  EXPECT_EQ(prepared.choice().script.shape,
            (Shape{.nodes = 3, .ranks_per_node = 4, .gpus = true, .walltime = 24 * 3600}));
  EXPECT_EQ(prepared.terms.planned_links, 3);
  EXPECT_EQ(prepared.terms.max_links, 8);
  EXPECT_EQ(prepared.queue_now, 1);
  request.machine.submit_from = spec::SubmitFrom::login;
  EXPECT_EQ(prepare(request, shipped_catalogue()).queue_now, 5);  // two to spare
  request.links = 4;
  EXPECT_EQ(prepare(request, shipped_catalogue()).queue_now, 4);
}

TEST(PrepareTest, SaysWhenTheCapEndsAChainBeforeItsRunIsDone) {
  SubmitRequest request = request_on("leonardo");
  request.hours = "1=100";
  request.walltime = 2 * 3600;
  request.max_links = 10;
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes,
              testing::ElementsAre(HasSubstr("ends after 10 of about 50 jobs")));
  request.max_links = 50;
  EXPECT_TRUE(prepare(request, shipped_catalogue()).notes.empty());
  request.machine.submit_from = spec::SubmitFrom::login;
  request.links = 5;
  request.max_links = 2;
  const Prepared login = prepare(request, shipped_catalogue());
  EXPECT_THAT(login.notes, testing::ElementsAre(HasSubstr("ends after 2 of about 5 jobs (--max-links)")));
  EXPECT_EQ(login.queue_now, 2);
}

TEST(PrepareTest, AsksForNoMoreTimeThanTheRunNeeds) {
  SubmitRequest request = request_on("leonardo");
  request.hours = "1=2";
  EXPECT_EQ(prepare(request, shipped_catalogue()).choice().script.shape.walltime, 3 * 3600 + 600);
  request.walltime = 7200;
  EXPECT_EQ(prepare(request, shipped_catalogue()).choice().script.shape.walltime, 7200);
}

TEST(PrepareTest, SaysWhatIsNotAskedForAsItStands) {
  SubmitRequest request = request_on("leonardo");
  request.walltime = 150;
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes,
              testing::ElementsAre("a walltime of 00:02:30 is asked for as 00:03:00: slurm counts in minutes"));
  request.machine.scheduler.kind = spec::SchedulerKind::pbs;
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes,
              testing::ElementsAre(HasSubstr("no memory is asked for, since no plan says how much")));
  request.machine.scheduler.memory = int64_t{16} << 30;
  EXPECT_TRUE(prepare(request, shipped_catalogue()).notes.empty());
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(":mem=16gb\n"));
}

// What the plan says of a node's memory, a quarter and 1 GiB; a stand-in for `lockstep plan` writes the document.
TEST(PrepareTest, AsksForTheMemoryThatThePlanNames) {
  const base::TemporaryFolder folder;
  spec::Plan plan;
  spec::PlanOption option;
  option.gpus = 4;
  option.feasible = option.fits = true;
  option.total_seconds = 3600;
  option.jobs = 1;
  option.host_memory.total = int64_t{20} << 30;
  plan.options.push_back(option);
  base::write_json(folder.path() / "plan.json", spec::to_json(plan));
  const base::Path program = folder.path() / "lockstep";
  base::write_file(program, base::text("#!/bin/sh\ncp '", (folder.path() / "plan.json").string(), "' \"$7\"\n"));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  SubmitRequest request = request_on("leonardo", {"scheduler.kind=pbs"});
  request.program = program.string();
  request.plan = true;
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(":mem=26gb\n"));
  request.machine.memory_per_node = int64_t{22} << 30;  // no more than there is
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(":mem=22gb\n"));
  request.machine.scheduler.memory = int64_t{3} << 30;
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(":mem=3gb\n"));
}

TEST(PrepareTest, BringsThePlaceOfQsubIntoTheJob) {
  site::FakeScheduler site;
  SubmitRequest request = request_on("leonardo", {"scheduler.kind=pbs"});
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, testing::Not(HasSubstr("export PATH")));
  site.install_recorded();
  EXPECT_THAT(prepare(request, shipped_catalogue()).script,
              HasSubstr(base::text("export PATH=\"$PATH\":", std::getenv("PATH"), "\n")));
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
  EXPECT_THROW(find_machine("leonrado", {}, shipped_catalogue()), base::Error);
}

TEST(PrepareTest, HoldsTheRanksAgainstTheJob) {
  SubmitRequest request = request_on("leonardo", {"sockets_per_node=2"});
  request.device = "cpu";
  request.nodes = {4};
  request.job.training.virtual_ranks = 4;
  EXPECT_THAT(complaint(request), HasSubstr("4 nodes of 2 ranks: 8 ranks share 4 slices"));
  request.nodes = {2};
  EXPECT_EQ(complaint(request), "");
  request.job.training.virtual_ranks = 0;
  request.job.training.batch_norm = spec::BatchNorm::ghost;
  request.job.training.ghost_batch = 12;
  EXPECT_THAT(complaint(request), HasSubstr("training.ghost_batch is 12"));
}

TEST(PrepareTest, ARankHasAGpu) {
  SubmitRequest request = request_on("leonardo");
  request.ranks_per_node = 8;
  EXPECT_THAT(complaint(request), HasSubstr("--ranks-per-node 8: leonardo has 4 GPUs a node"));
  request.ranks_per_node = 2;
  request.job.training.virtual_ranks = 2;
  EXPECT_EQ(complaint(request), "");
  EXPECT_EQ(prepare(request, shipped_catalogue()).choice().script.shape.ranks_per_node, 2);
}

// A stand-in for `lockstep plan` that keeps the machine it was asked about.
TEST(PrepareTest, PlansTheGpusThatTheJobAsksFor) {
  const base::TemporaryFolder folder;
  const base::Path program = folder.path() / "lockstep";
  base::write_file(program, base::text("#!/bin/sh\ncp \"$4\" '", (folder.path() / "asked.json").string(),
                                       "'\necho \"$@\" > '", (folder.path() / "words").string(), "'\nexit 3\n"));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  SubmitRequest request = request_on("leonardo");
  request.program = program.string();
  request.plan = true;
  request.nodes = {3};
  request.ranks_per_node = 1;
  prepare(request, shipped_catalogue());
  EXPECT_EQ(base::read_json(folder.path() / "asked.json").at("gpus_per_node").as_int(), 1);
  EXPECT_THAT(base::read_file(folder.path() / "words"), HasSubstr("--gpus 3 "));
}

TEST(PrepareTest, AProcessorThatNobodyKnowsIsNoFaultOfTheJob) {
  SubmitRequest request = request_on("leonardo", {"cpu=AMD EPYC"});
  request.device = "cpu";
  request.plan = true;
  request.program = "/bin/false";
  ASSERT_EQ(prepare(request, shipped_catalogue()).notes.size(), 1u);
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes[0],
              HasSubstr("not planned: the catalogue has no processor 'AMD EPYC'"));
  request.machine.cpu.clear();
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes.at(0),
              HasSubstr("not planned: leonardo does not state its processor"));
}

TEST(PrepareTest, WarnsOfARunInWhichOthersCanPutALinkForSlurmToFollow) {
  const base::TemporaryFolder folder;
  SubmitRequest request = request_on("leonardo");
  request.run = folder.path();
  const auto told = testing::Contains(HasSubstr(base::text("for its output: chmod go-w ", folder.path().string())));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes, testing::Not(told));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0775));
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes, told);
}

TEST(PrepareTest, WarnsOfARunThatOtherNodesDoNotSee) {
  SubmitRequest request = request_on("leonardo");
  EXPECT_TRUE(prepare(request, shipped_catalogue()).notes.empty());
  for (const char* run : {"/tmp/pets", "/dev/shm/me/pets", "/no/../tmp/pets"}) {
    request.run = run;
    EXPECT_THAT(prepare(request, shipped_catalogue()).notes,
                testing::ElementsAre(HasSubstr("which at most sites each node has")));
  }
  request.run = "/tmpfiles/pets";
  EXPECT_TRUE(prepare(request, shipped_catalogue()).notes.empty());
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", "/scratch/local", 1);
  request.run = "/scratch/local/pets";
  EXPECT_THAT(prepare(request, shipped_catalogue()).notes, testing::ElementsAre(HasSubstr("is in /scratch/local,")));
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}

TEST(PrepareTest, WhereSbatchIsMissingTheEarliestIsToldOnTheLoginNode) {
  const site::FakeScheduler laptop;
  SubmitRequest request = request_on("leonardo");
  request.nodes = {1, 2};
  request.hours = "1=2,2=1";
  request.earliest = true;
  try {
    prepare(request, shipped_catalogue());
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_THAT(error.message(), HasSubstr("sbatch"));
    EXPECT_THAT(error.fix(), HasSubstr("log in there"));
  }
}

TEST(PrepareTest, ChoosesAmongTheShapesThatPbsCouldStartNow) {
  site::FakeScheduler pbs;
  pbs.install_recorded();
  SubmitRequest request =
      request_on("leonardo", {"scheduler={\"kind\":\"pbs\",\"partition\":\"small\",\"exclusive_nodes\":false}"});
  request.device = "cpu";
  request.machine.cores_per_node = 2;
  request.walltime = 3600;
  request.nodes = {1, 2};
  request.hours = "1=2,2=1.2";
  request.earliest = true;
  EXPECT_EQ(prepare(request, shipped_catalogue()).chosen, 1u);
  request.machine.cores_per_node = 34;  // free on one node alone
  const Prepared one = prepare(request, shipped_catalogue());
  EXPECT_EQ(one.chosen, 0u);
  EXPECT_THAT(one.candidates[1].refusal, HasSubstr("1 node is free for it now"));
  request.machine.scheduler.partition = "workq";
  EXPECT_THAT(complaint(request), HasSubstr("1 nodes: 1 job waits in queue workq, and PBS forecasts"));
}

TEST(PrepareTest, ACollectionHasItsStateBesideItsResults) {
  EXPECT_EQ(collection_folder({"run", "a", "--to", "/data/found.jsonl"}), "/data/found.files");
  EXPECT_EQ(collection_folder({"run", "a", "--to=/data/found.jsonl"}), "/data/found.files");
  EXPECT_TRUE(collection_folder({"run", "a", "--to", "found.jsonl"}).is_absolute());
  const auto fix_for = [](const std::vector<std::string>& words) {
    try {
      collection_folder(words);
    } catch (const base::Error& error) {
      return error.fix();
    }
    return std::string();
  };
  EXPECT_THAT(fix_for({"run", "a"}), HasSubstr("--to found.jsonl"));
  EXPECT_THAT(fix_for({"run", "a", "--to", "found.csv"}), HasSubstr("--to found.jsonl"));
  EXPECT_THAT(fix_for({"run", "--ranks=4", "a"}), HasSubstr("--ranks-per-node"));
  EXPECT_THAT(fix_for({"run", "a", "--again"}), HasSubstr("without --again"));
}

TEST(PrepareTest, AStudyHasItsStateInItsFolder) {
  const base::TemporaryFolder folder;
  const base::Path study = folder.path() / "s.json";
  base::write_file(study, R"({"name": "lr", "space": {"x": {"range": [0, 1]}}})");
  EXPECT_EQ(study_folder({study.string(), "--to", "/data/s", "--", "p", "--to", "{x}"}), "/data/s");
  EXPECT_EQ(study_folder({"--set", "trials=3", study.string()}).filename(), "lr");
  EXPECT_EQ(study_folder({"--partition", study.string(), "--", "p"}).filename(), "lr");
  EXPECT_THROW(study_folder({study.string(), "--workers", "3"}), base::Error);
  EXPECT_THROW(study_folder({"--to", "x", "--", "p"}), base::Error);
}

TEST(PrepareTest, APartitionHasOneNode) {
  SubmitRequest request = request_on("leonardo");
  request.job = {};
  request.device = "cpu";
  request.nodes = {2};
  request.run = "/no/such/study";
  request.work = {"tune", "s.json", "--", "./p", "--partition", "{x}"};  // a word of the program
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(" tune --workers "));
  request.work = {"tune", "--partition", "s.json", "--", "./p", "{x}"};
  EXPECT_THAT(complaint(request), HasSubstr("--nodes 2: one process keeps the points of a partition"));
  request.nodes = {1};
  EXPECT_THAT(prepare(request, shipped_catalogue()).script, HasSubstr(" --partition s.json -- ./p"));
}

TEST(PrepareTest, ACollectionNeedsNoJobAndNoPlan) {
  SubmitRequest request = request_on("leonardo");
  request.job = {};
  request.plan = true;
  request.work = {"predict", "run", "a", "--to", "/no/such/found.jsonl"};
  request.run = collection_folder({request.work.begin() + 1, request.work.end()});
  const Prepared prepared = prepare(request, shipped_catalogue());
  EXPECT_THAT(prepared.script, HasSubstr(" predict run a --to /no/such/found.jsonl --device cuda --ranks 4\n"));
  EXPECT_EQ(prepared.terms.max_links, 50);
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

}  // namespace
}  // namespace lockstep::chain
