// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
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
  EXPECT_THAT(submit_words(SchedulerName::slurm, "x.sh", {For::success_of, "7:9"}),
              ElementsAre("sbatch", "--parsable", "--dependency=afterok:7:9", "--kill-on-invalid-dep=yes", "x.sh"));
  EXPECT_THAT(submit_words(SchedulerName::pbs, "x.sh", {For::success_of, "7.head:9.head"}),
              ElementsAre("qsub", "-W", "depend=afterok:7.head:9.head", "x.sh"));
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
  const auto waiting = parse_qstat(recorded_answer("qstat -f 1.n1"));
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].id, "1.n1");
  EXPECT_EQ(waiting[0].state, BatchJob::State::waiting);
  EXPECT_EQ(waiting[0].reason, "Not Running: Insufficient amount of resource: ncpus (R: 72 A: 36 T: 72)");
  EXPECT_EQ(waiting[0].start, "");
  const auto running = parse_qstat(recorded_answer("qstat -f 0.n1"));
  EXPECT_EQ(running.at(0).state, BatchJob::State::running);
  EXPECT_EQ(running[0].on_nodes, "n1/0*32");
  EXPECT_EQ(running[0].start, "Mon Nov 16 13:20:11 2026");
  EXPECT_EQ(parse_qstat(recorded_answer("qstat -f 3.n1")).at(0).said, "H");
}

TEST(BatchTest, ReadsWhenPbsExpectsAJobToStart) {
  const auto jobs =
      parse_qstat("Job Id: 1.n1\n" + recorded_answer("qstat -f 1.n1 | grep -A1 -E 'estimated|comment|job_state'"));
  EXPECT_EQ(jobs.at(0).start, "Mon Nov 16 14:20:11 2026");
}

TEST(BatchTest, ReadsTheQueueOfTorque) {
  note_unrecorded("qstat -f", "Torque");
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
  site.install_recorded({"qstat -f 38.n1 39.n1 => qstat -f 38.n1 39.n1 40.n1 41.n1 | $KEY"});
  const auto jobs = find_jobs(SchedulerName::pbs, "pets", {"38.n1", "39.n1"});
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 4u);
  EXPECT_EQ(jobs->at(1).id, "39.n1");
  EXPECT_EQ(jobs->at(1).state, BatchJob::State::waiting);
}

// Jobs that are over are complained of, beside the answer about the others; a server that is away is no such thing.
TEST(BatchTest, TakesNoOtherComplaintOfPbsForAJobThatIsOver) {
  FakeScheduler site;
  site.install_recorded({"qstat -f 0.n1 99999.n1 17.n1 => qstat 0.n1 99999.n1 17.n1", "qstat -f 17.n1 => qstat 17.n1",
                         "qstat -f 0.n1 => 12: qstat -f 0.n1"});
  EXPECT_TRUE(find_jobs(SchedulerName::pbs, "pets", {"0.n1", "99999.n1", "17.n1"}));
  EXPECT_TRUE(find_jobs(SchedulerName::pbs, "pets", {"17.n1"})->empty());
  EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"0.n1"}), std::nullopt);
  for (const char* words : {"qstat: Invalid credential", "qstat: End of File", "Communication failure."}) {
    site.install_unrecorded("qstat", base::text("echo '", words, "' >&2; exit 1"), words);
    EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"7.head"}), std::nullopt) << words;
  }
  site.install_unrecorded("qstat", "exit 1", "no word at all");
  EXPECT_EQ(find_jobs(SchedulerName::pbs, "pets", {"7.head"}), std::nullopt);
}

TEST(BatchTest, CancelsJobsOfPbsThatMayBeGone) {
  FakeScheduler site;
  site.install_recorded({"qdel 0.n1 => 12: qdel 0.n1"});
  for (const char* id : {"17.n1", "99999.n1"}) EXPECT_TRUE(cancel_jobs(SchedulerName::pbs, {id})) << id;
  EXPECT_FALSE(cancel_jobs(SchedulerName::pbs, {"34.n1"}));  // somebody else's
  EXPECT_FALSE(cancel_jobs(SchedulerName::pbs, {"0.n1"}));   // no server
}

TEST(BatchTest, SubmitsFromTheFolderOfTheScript) {
  FakeScheduler site;
  const base::TemporaryFolder folder;
  const std::string here = (folder.path() / "here").string();
  site.install_script("qsub", "pwd > here; echo 0.n1");
  EXPECT_EQ(submit_script(SchedulerName::pbs, folder.path() / "submit.sh", {}).id, "0.n1");
  EXPECT_EQ(base::read_file(here), folder.path().string() + "\n");
  EXPECT_EQ(pbs_output("pets-0a1b2c", "12.n1"), "pets-0a1b2c.o12");
}

TEST(BatchTest, TellsWhatPbsRefused) {
  FakeScheduler site;
  site.install_recorded({"qsub *x.sh => qsub -q closed s.sh"});
  EXPECT_EQ(submit_script(SchedulerName::pbs, "/x.sh", {}).refusal, "qsub: Queue is not enabled");
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
  EXPECT_EQ(how_ended(SchedulerName::slurm, "2").words, "FAILED, JobLaunchFailure, exit code 0:53");
  EXPECT_EQ(parse_scontrol("JobState=CANCELLED Reason=None ExitCode=0:0"),
            (JobEnd{.words = "CANCELLED", .by_hand = true}));
  EXPECT_TRUE(parse_scontrol("JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125").out_of_memory);
  site.install_script("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(how_ended(SchedulerName::slurm, "2"), JobEnd{});
  site.install_script("scontrol", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(how_ended(SchedulerName::slurm, "2"), JobEnd{.is_silent = true});
}

TEST(BatchTest, TellsHowAJobOfPbsEnded) {
  FakeScheduler site;
  site.install_recorded(
      {"qstat -x -f 40.n1 => qstat -x -f 26.n1 | grep -A1 -E "
       "'job_state|substate|depend|comment|Exit_status|history'"});
  const JobEnd memory = how_ended(SchedulerName::pbs, "13.n1");
  EXPECT_EQ(memory.words,
            "Job run at Mon Nov 16 at 13:20 on (n2:ncpus=1:mem=51200kb) and exceeded resource mem, exit status -27");
  EXPECT_TRUE(memory.out_of_memory);
  const std::string signalled = "grep -E 'Job Id|job_state|depend|Hold_Types|substate|Exit_status|comment'";
  const JobEnd qsig = parse_pbs_end(recorded_answer("14: qstat -x -f 14.n1 | " + signalled));
  EXPECT_THAT(qsig.words, testing::EndsWith("and failed, exit status 266"));
  EXPECT_EQ(qsig.signal, SIGUSR1);
  EXPECT_EQ(memory.signal, 0);
  const JobEnd walltime = how_ended(SchedulerName::pbs, "12.n1");
  EXPECT_THAT(walltime.words, testing::EndsWith("exceeded resource walltime, exit status -29"));
  EXPECT_FALSE(walltime.out_of_memory);
  EXPECT_FALSE(walltime.by_hand);
  EXPECT_THAT(how_ended(SchedulerName::pbs, "16.n1").words, testing::EndsWith("and failed, exit status -2"));
  const std::string head = "Job Id: 32.n1\n";
  EXPECT_EQ(
      parse_pbs_end(
          head + recorded_answer("qstat -x -f 32.n1 | grep -E 'job_state|substate|Exit_status|comment|stime|history'")),
      (JobEnd{.words = "deleted before it ran", .by_hand = true}));
  EXPECT_THAT(parse_pbs_end(recorded_answer("13: qstat -x -f 9.n1 | $KEY")).words,
              testing::StartsWith("ended by the server before it ran: the job that it waited for was deleted"));
  EXPECT_EQ(how_ended(SchedulerName::pbs, "10.n1").words,
            "Job run at Mon Nov 16 at 13:20 on (n1:ncpus=1) and finished, exit status 0");
  EXPECT_EQ(parse_pbs_end(recorded_answer("qstat -x 10.n1")), JobEnd{});  // forgotten
  site.install_recorded({"qstat -x -f 8.n1 => qstat -x 10.n1", "qstat -x -f 9.n1 => 12: qstat -f 0.n1"});
  EXPECT_EQ(how_ended(SchedulerName::pbs, "8.n1"), JobEnd{});
  EXPECT_EQ(how_ended(SchedulerName::pbs, "9.n1"), JobEnd{.is_silent = true});
}

}  // namespace
}  // namespace lockstep::site
