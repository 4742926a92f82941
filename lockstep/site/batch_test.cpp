// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

using testing::ElementsAre;
using For = Waits::For;

TEST(BatchTest, QueuesWithTheDependencyOfEachScheduler) {
  EXPECT_THAT(submit_words(SchedulerName::slurm, "a b.sh", {}), ElementsAre("sbatch", "--parsable", "a b.sh"));
  EXPECT_THAT(submit_words(SchedulerName::slurm, "x.sh", {For::failure_of, "7"}),
              ElementsAre("sbatch", "--parsable", "--dependency=afternotok:7", "--kill-on-invalid-dep=yes", "x.sh"));
  EXPECT_THAT(submit_words(SchedulerName::slurm, "x.sh", {For::same_name, ""}),
              ElementsAre("sbatch", "--parsable", "--dependency=singleton", "x.sh"));
  EXPECT_THAT(submit_words(SchedulerName::pbs, "x.sh", {For::failure_of, "7.head"}),
              ElementsAre("qsub", "-W", "depend=afternotok:7.head", "x.sh"));
  EXPECT_THAT(submit_words(SchedulerName::pbs, "x.sh", {For::end_of, "7.head"}),
              ElementsAre("qsub", "-W", "depend=afterany:7.head", "x.sh"));
}

TEST(BatchTest, ReadsTheNumberOfANewJob) {
  EXPECT_EQ(parse_job_id(SchedulerName::slurm, "12;cluster\n"), "12");
  EXPECT_EQ(parse_job_id(SchedulerName::slurm, "12\n"), "12");
  EXPECT_EQ(parse_job_id(SchedulerName::pbs, "7.head\n"), "7.head");
}

TEST(BatchTest, ReadsTheQueue) {
  const auto jobs = parse_squeue(
      "12|RUNNING|None|2026-11-15T17:00:00|2026-11-15T17:01:00|n[1-2]\n"
      "13|PENDING|Dependency|N/A|N/A|\n"
      "11|COMPLETING|None|2026-11-15T16:00:00|2026-11-15T17:00:00|n1\n"
      "10|TIMEOUT|TimeLimit|2026-11-15T16:00:00|2026-11-15T17:00:00|n1\n");
  ASSERT_EQ(jobs.size(), 4);
  EXPECT_EQ(jobs[0], (BatchJob{"12", BatchJob::State::running, "RUNNING", "", "2026-11-15T17:00:00",
                               "2026-11-15T17:01:00", "n[1-2]"}));
  EXPECT_EQ(jobs[1].state, BatchJob::State::waiting);
  EXPECT_EQ(jobs[1].reason, "Dependency");
  EXPECT_EQ(jobs[1].start, "");
  EXPECT_EQ(jobs[2].state, BatchJob::State::ending);
  EXPECT_FALSE(jobs[3].active());
}

TEST(BatchTest, ReadsTheQueueOfPbs) {
  const auto jobs = parse_qstat(
      "Job Id: 7.head\n    Job_Name = pets\n    job_state = H\n    comment = Job held, dependency\n\n"
      "Job Id: 6.head\n    job_state = R\n    exec_host = n1/0\n    stime = Sun Nov 15 09:57:44 2026\n");
  ASSERT_EQ(jobs.size(), 2);
  EXPECT_EQ(jobs[0].id, "7.head");
  EXPECT_EQ(jobs[0].state, BatchJob::State::waiting);
  EXPECT_EQ(jobs[0].reason, "Job held, dependency");
  EXPECT_EQ(jobs[1].state, BatchJob::State::running);
  EXPECT_EQ(jobs[1].on_nodes, "n1/0");
  EXPECT_EQ(jobs[1].start, "Sun Nov 15 09:57:44 2026");
}

TEST(BatchTest, ReadsTheQueueOfTorque) {
  const auto jobs = parse_qstat(
      "Job Id: 6.head\n    job_state = R\n    exec_host = n1/0+n1/1\n    Resource_List.walltime = 02:00:00\n"
      "    start_time = Sun Nov 15 09:57:44 2026\n    Walltime.Remaining = 7190\n    start_count = 1\n");
  ASSERT_EQ(jobs.size(), 1);
  EXPECT_EQ(jobs[0].start, "Sun Nov 15 09:57:44 2026");
}

TEST(BatchTest, ReadsWhenAJobWouldStart) {
  const Prospect soon = parse_test_only(
      "sbatch: Job 3 to start at 2026-11-15T16:40:00 using 2 processors on nodes n[1-2] in partition main\n");
  std::tm parts{};
  parts.tm_year = 126;
  parts.tm_mon = 10;
  parts.tm_mday = 15;
  parts.tm_hour = 16;
  parts.tm_min = 40;
  parts.tm_isdst = -1;
  EXPECT_EQ(soon.start, std::mktime(&parts));
  const Prospect never = parse_test_only("allocation failure: Requested node configuration is not available\n");
  EXPECT_EQ(never.start, std::nullopt);
  EXPECT_EQ(never.refusal, "allocation failure: Requested node configuration is not available");
}

TEST(BatchTest, AsksPbsForAllJobsAtOnce) {
  FakeScheduler site;
  site.install_script("qstat",
                      "echo \"Job Id: $3\"; echo '    job_state = R'; echo 'qstat: Unknown Job Id 6' >&2; exit 153");
  const auto jobs = find_jobs(SchedulerName::pbs, "pets", {"6.head", "7.head"});
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().id, "7.head");
  site.install_script("qstat", "echo 'qstat: cannot connect to server head' >&2; exit 1");
  EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"7.head"}), std::nullopt);
}

TEST(BatchTest, TakesNoOtherComplaintOfPbsForAJobThatIsOver) {
  FakeScheduler site;
  for (const char* words : {"qstat: Invalid credential", "qstat: End of File", "Communication failure."}) {
    site.install_script("qstat", base::text("echo '", words, "' >&2; exit 1"));
    EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"7.head"}), std::nullopt) << words;
  }
  site.install_script("qstat", "exit 1");
  EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"7.head"}), std::nullopt);
  site.install_script("qstat", "echo 'qstat: 7.head Job has finished, use -x or -H' >&2; exit 35");
  EXPECT_TRUE(find_jobs(SchedulerName::pbs, "pets", {"7.head"})->empty());
}

TEST(BatchTest, SaysWhenTheCommandIsNotHere) {
  FakeScheduler site;
  EXPECT_EQ(submit_script(SchedulerName::slurm, "x.sh", {}).refusal, "sbatch is not on PATH here");
  EXPECT_EQ(submit_script(SchedulerName::pbs, "x.sh", {}).refusal, "qsub is not on PATH here");
  EXPECT_EQ(ask_start("x.sh").refusal, "sbatch is not on PATH here");
}

TEST(BatchTest, HasWordsForARefusalWithoutAny) {
  FakeScheduler site;
  site.install_script("sbatch", "exit 1");
  EXPECT_EQ(submit_script(SchedulerName::slurm, "x.sh", {}).refusal,
            "sbatch ended with exit code 1 and gave no job number");
  site.install_script("sbatch", "exit 0");
  EXPECT_EQ(submit_script(SchedulerName::slurm, "x.sh", {}).refusal,
            "sbatch ended with exit code 0 and gave no job number");
}

TEST(BatchTest, ExcludesHostsBesidesThoseOfTheScript) {
  FakeScheduler site;
  const base::TemporaryFolder folder;
  const std::string calls = (folder.path() / "calls").string();
  site.install_script("squeue", "echo n4");
  site.install_script("scontrol", "echo \"$@\" > '" + calls + "'");
  EXPECT_TRUE(exclude_hosts(SchedulerName::slurm, "12", {"n1", "n2"}));
  EXPECT_EQ(base::read_file(calls), "update JobId=12 ExcNodeList=n4,n1,n2\n");
  site.install_script("squeue", "echo");
  EXPECT_TRUE(exclude_hosts(SchedulerName::slurm, "12", {"n1"}));
  EXPECT_EQ(base::read_file(calls), "update JobId=12 ExcNodeList=n1\n");
  EXPECT_FALSE(exclude_hosts(SchedulerName::pbs, "12.head", {"n1"}));
}

TEST(BatchTest, TellsWhatTheSchedulerRefused) {
  FakeScheduler site;
  site.install_script("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1");
  site.install_script("scancel",
                      "echo 'scancel: error: Kill job error on job id 5: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(submit_script(SchedulerName::slurm, "x.sh", {}).id, "");
  EXPECT_EQ(submit_script(SchedulerName::slurm, "x.sh", {}).refusal, "sbatch: error: invalid partition specified: x");
  EXPECT_TRUE(cancel_jobs(SchedulerName::slurm, {"5"}));
  EXPECT_EQ(find_jobs(SchedulerName::slurm, "pets", {}), std::nullopt);
}

TEST(BatchTest, TellsHowAJobEndedThatTheQueueShowsNoMore) {
  FakeScheduler site;
  site.install(
      "scontrol",
      "JobId=2 JobName=pets Reason=JobLaunchFailure JobState=FAILED Dependency=(null) ExitCode=0:53 Requeue=0");
  EXPECT_EQ(how_ended(SchedulerName::slurm, "2"), "FAILED, JobLaunchFailure, exit code 0:53");
  EXPECT_EQ(parse_scontrol("JobState=CANCELLED Reason=None ExitCode=0:0"), "CANCELLED");
  site.install_script("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(how_ended(SchedulerName::slurm, "2"), "");
  site.install("qstat", "Job Id: 7.head\n    job_state = F\n    comment = Job failed, exec host n1");
  EXPECT_EQ(how_ended(SchedulerName::pbs, "7.head"), "F, Job failed, exec host n1");
  site.install_script("qstat", "echo 'qstat: Unknown Job Id 7.head' >&2; exit 153");
  EXPECT_EQ(how_ended(SchedulerName::pbs, "7.head"), "");
}

}  // namespace
}  // namespace lockstep::site
