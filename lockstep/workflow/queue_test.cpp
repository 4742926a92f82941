// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"
#include "lockstep/workflow/small_workflow.h"

namespace lockstep::workflow {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kQueued = R"(
    "get": {"command": ["fetch"], "outputs": ["raw"]},
    "train": {"train": ["job.json", "--run", "r", "--ranks", "{ranks}", "--device", "cuda"], "inputs": ["raw"], "outputs": ["r/w"],
              "resources": {"gpus": 2, "walltime": "1:00:00", "jobs": 2, "memory": "8 GiB"}},
    "show": {"command": ["show"], "inputs": ["r/w"], "after": ["get"], "resources": {"cores": 3}})";

class QueueTest : public testing::Test {
 protected:
  QueueTest() : small_(kQueued) {
    request_.workflow = small_.workflow;
    request_.document = small_.folder() / "workflow.json";
    request_.folder = small_.folder();
    request_.state = small_.paths().root;
    request_.program = "/opt/lockstep";
    request_.machine = spec::parse_machine(base::parse_json(
        R"({"name": "lab", "nodes": 4, "cores_per_node": 8, "gpus_per_node": 4, "gpu": "a100-40",
            "scheduler": {"kind": "slurm", "walltime": "24:00:00", "exclusive_nodes": false}})",
        "machine.json"));
    slurm_.install("sinfo", "");
    slurm_.install("squeue", "");
    slurm_.install_script("sbatch",
                          base::text("/bin/echo \"$@\" >> ", (small_.folder() / "calls").string(), "; read -r n < ",
                                     (small_.folder() / "number").string(), "; n=$((n + 1)); echo $n > ",
                                     (small_.folder() / "number").string(), "; echo $n"));
    base::write_file("number", "100\n");
  }
  site::FakeScheduler slurm_;
  SmallWorkflow small_;
  QueueRequest request_;
};

TEST_F(QueueTest, AJobWaitsForTheSuccessOfThoseBeforeIt) {
  const auto jobs = queue_stages(request_);
  ASSERT_EQ(jobs.size(), 4U);  // two in a row for the training
  EXPECT_EQ(jobs[0].job, "101");
  EXPECT_EQ(jobs[3].stage, "show");
  const std::string calls = base::read_file("calls");
  EXPECT_THAT(calls, HasSubstr("--dependency=afterok:101 --kill-on-invalid-dep=yes"));
  EXPECT_THAT(calls, HasSubstr("--dependency=afterany:102"));
  EXPECT_THAT(calls, HasSubstr("--dependency=afterok:101:103 --kill-on-invalid-dep=yes"));
  const std::string script = base::read_file(small_.paths().script("train"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --gres=gpu:2\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --mem=8G\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --time=01:00:00\n"));
  EXPECT_THAT(script, HasSubstr("exec /opt/lockstep workflow run"));
  EXPECT_THAT(script, HasSubstr("--stage train"));
  EXPECT_THAT(base::read_file(small_.paths().script("show")), HasSubstr("#SBATCH --cpus-per-task=3\n"));
}

TEST_F(QueueTest, WhatStandsInTheQueueIsNotQueuedTwice) {
  queue_stages(request_);
  slurm_.install_script(
      "squeue",  // asked for all names at once; a single one, of a job that nobody noted, has none
      "case $2 in *,*) echo '101|RUNNING|None|N/A|N/A|n1'; echo '103|PENDING|Dependency|N/A|N/A|';; esac");
  const auto queue = read_queue(small_.paths());
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->live("get")->seen->said, "RUNNING");
  EXPECT_EQ(queue->live("show"), nullptr);
  const auto jobs = queue_stages(request_);
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].job, "101");
  EXPECT_EQ(jobs[0].script, "kept");
  EXPECT_EQ(jobs[1].job, "103");
  EXPECT_EQ(jobs[2].job, "105");
  EXPECT_THAT(base::read_file("calls"), HasSubstr("--dependency=afterok:101:103 --kill-on-invalid-dep=yes"));
  slurm_.install("scancel", "");
  EXPECT_FALSE(cancel_stages(small_.paths()).empty());
}

// What it waits for has left the queue and would get a new job, for which the one that is kept does not wait.
TEST_F(QueueTest, AJobThatWouldRunOnOldInputsIsNotKept) {
  queue_stages(request_);
  const std::string calls = base::read_file("calls");
  slurm_.install_script(
      "squeue", "case $2 in *,*) echo '101|RUNNING|None|N/A|N/A|n1'; echo '104|PENDING|Dependency|N/A|N/A|';; esac");
  try {
    queue_stages(request_);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(error.what(),
                HasSubstr("stage 'show' is in the queue as job 104, and does not wait for stage 'train'"));
    EXPECT_THAT(error.fix(), HasSubstr("scancel 104; then the same command"));
  }
  EXPECT_EQ(base::read_file("calls"), calls);  // nothing was queued before it was seen
}

// Others who can write to the folder of a workflow neither choose which jobs of this user end, nor what runs as him.
TEST_F(QueueTest, WhatOthersCanWriteEndsNoJobAndIsNotQueued) {
  const auto umask_before = ::umask(0002);
  queue_stages(request_);
  const auto open_to_others = [](const base::Path& path) {
    return (std::filesystem::status(path).permissions() & std::filesystem::perms(0022)) != std::filesystem::perms::none;
  };
  EXPECT_FALSE(open_to_others(small_.paths().root));
  EXPECT_FALSE(open_to_others(small_.paths().stage("get")));
  EXPECT_FALSE(open_to_others(small_.paths().script("get")));
  EXPECT_FALSE(open_to_others(small_.paths().queue()));
  slurm_.install_script("scancel", base::text("/bin/echo \"$@\" >> ", (small_.folder() / "cancelled").string()));
  slurm_.install_script("squeue", "exit 1");  // the scheduler does not say which are there
  EXPECT_EQ(cancel_stages(small_.paths()).size(), 4U);
  base::write_file(small_.paths().queue(), R"({"v":1,"t":1,"event":"queued","stage":"get","job":"--user=me"})"
                                           "\n");
  ::chmod(small_.paths().queue().c_str(), 0664);
  std::filesystem::remove("cancelled");
  EXPECT_THROW(cancel_stages(small_.paths()), base::Error);
  ::chmod(small_.paths().queue().c_str(), 0644);
  cancel_stages(small_.paths());  // an option in the place of a job's number
  EXPECT_FALSE(base::is_there("cancelled"));
  std::vector<std::string> said;
  request_.say = [&](const std::string& note) { said.push_back(note); };
  slurm_.install("squeue", "");
  ::chmod(small_.paths().stage("show").c_str(), 0775);
  queue_stages(request_);
  EXPECT_THAT(said, testing::ElementsAre(HasSubstr("chmod go-w")));
  ::umask(umask_before);
}

TEST_F(QueueTest, OnPbsItSaysWhichStagesAskForNoMemory) {
  request_.machine.scheduler.kind = spec::SchedulerKind::pbs;
  std::vector<std::string> said;
  request_.say = [&](const std::string& note) { said.push_back(note); };
  dry_run(request_);
  EXPECT_THAT(said, testing::ElementsAre(HasSubstr("no memory is asked for by get, show: ")));
  request_.folder = "/somewhere/it's";
  request_.state = "/somewhere/it's/w.workflow";
  try {
    dry_run(request_);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.fix(), HasSubstr("--to OTHER_FOLDER"));
  }
}

TEST_F(QueueTest, NamesTheStageThatAsksForTooMuch) {
  const auto complaint = [&](const char* resources) -> std::string {
    small_.describe(base::text(R"("a": {"command": ["x"], "resources": )", resources, "}"));
    try {
      shape_of(small_.workflow.stages[0], request_.machine);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(complaint(R"({"gpus": 5})"), HasSubstr("stage 'a': it asks for 5 GPUs a node, lab has 4"));
  EXPECT_THAT(complaint(R"({"cores": 9})"), HasSubstr("9 cores"));
  EXPECT_THAT(complaint(R"({"nodes": 9})"), HasSubstr("9 nodes"));
  EXPECT_THAT(complaint(R"({"walltime": "48:00:00"})"), HasSubstr("lets a job run for 24:00:00"));
  EXPECT_THAT(complaint("{}"), IsEmpty());
  request_.machine.scheduler.kind = spec::SchedulerKind::none;
  EXPECT_THROW(queue_stages(request_), base::Error);
}

TEST_F(QueueTest, ARefusalNamesItsStage) {
  slurm_.install_script("sbatch", "echo 'sbatch: error: Invalid account' >&2; exit 1");
  try {
    queue_stages(request_);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stage 'get'"));
  }
}

}  // namespace
}  // namespace lockstep::workflow
