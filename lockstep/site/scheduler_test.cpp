// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/scheduler.h"

#include <gtest/gtest.h>

#include <ctime>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

using std::chrono::seconds;

TEST(SchedulerTest, SeesNoSchedulerOnALaptop) {
  const FakeScheduler laptop;
  EXPECT_EQ(read_scheduler(), Scheduler{});
  EXPECT_EQ(seconds_left(), std::nullopt);
}

TEST(SchedulerTest, KnowsALoginNodeByCommandsWithoutAnAllocation) {
  FakeScheduler site;
  site.install("sbatch");
  EXPECT_EQ(read_scheduler().name, SchedulerName::slurm);
  EXPECT_TRUE(read_scheduler().login_node());
}

TEST(SchedulerTest, IsNoLoginNodeInsideAnAllocation) {
  FakeScheduler site;
  site.install("sbatch");
  site.set("SLURM_JOB_ID", "42");
  site.set("SLURM_JOB_NUM_NODES", "4");
  site.set("SLURM_JOB_PARTITION", "main");
  const Scheduler scheduler = read_scheduler();
  EXPECT_TRUE(scheduler.in_allocation());
  EXPECT_FALSE(scheduler.login_node());
  EXPECT_EQ(scheduler.nodes, 4);
  EXPECT_EQ(scheduler.partition, "main");
}

TEST(SchedulerTest, KnowsPbsAndItsSubmitLine) {
  FakeScheduler site;
  site.install("qsub");
  site.install("qstat");
  EXPECT_EQ(read_scheduler().name, SchedulerName::pbs);
  EXPECT_TRUE(read_scheduler().login_node());
  EXPECT_EQ(submit_line(SchedulerName::pbs, "prep", "photos shards", std::chrono::hours(2)),
            "echo 'cd \"$PBS_O_WORKDIR\" && lockstep prep photos shards' | qsub -N lockstep-prep -l select=1 "
            "-l place=excl -l walltime=02:00:00");
  site.set("PBS_JOBID", "7.head");
  EXPECT_FALSE(read_scheduler().login_node());
}

TEST(SchedulerTest, QuotesWhatItHandsToTheShell) {
  EXPECT_EQ(submit_line(SchedulerName::slurm, "train", "job.json --set 'name=a b'", std::chrono::minutes(90)),
            "sbatch --job-name=lockstep-train --nodes=1 --exclusive --time=01:30:00 "
            R"(--wrap 'lockstep train job.json --set '\''name=a b'\''')");
}

TEST(SchedulerTest, TakesSlurmWhereBothSetsOfCommandsAreInstalled) {
  FakeScheduler site;
  for (const char* command : {"sbatch", "qsub", "qstat"}) site.install(command);
  EXPECT_EQ(read_scheduler().name, SchedulerName::slurm);
}

TEST(SchedulerTest, AsksSqueueForTheTimeLeft) {
  FakeScheduler site;
  site.install("squeue", "1:30:00");
  site.set("SLURM_JOB_ID", "42");
  EXPECT_EQ(seconds_left(), seconds(5400));
  site.set("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 600));
  EXPECT_NEAR(static_cast<double>(seconds_left()->count()), 600, 2);
}

TEST(TimeLeftTest, ReadsSlurmsWaysToWriteIt) {
  EXPECT_EQ(left_by_squeue("1-02:03:04\n"), seconds(86400 + 2 * 3600 + 3 * 60 + 4));
  EXPECT_EQ(left_by_squeue("9:58"), seconds(598));
  EXPECT_EQ(left_by_squeue("UNLIMITED"), std::nullopt);
  EXPECT_EQ(left_by_squeue(""), std::nullopt);
}

TEST(TimeLeftTest, ReadsQstat) {
  std::tm start{};
  ASSERT_NE(::strptime("Sun Nov 15 09:00:00 2026", "%a %b %d %H:%M:%S %Y", &start), nullptr);
  start.tm_isdst = -1;
  const int64_t began = std::mktime(&start);
  const char* answer = "Job Id: 7.head\n    Resource_List.walltime = 02:00:00\n    stime = Sun Nov 15 09:00:00 2026\n";
  EXPECT_EQ(left_by_qstat(answer, began + 1800), seconds(5400));
  EXPECT_EQ(left_by_qstat("Job Id: 7.head\n", began), std::nullopt);
  std::tm real{};
  ASSERT_NE(::strptime("Mon Nov 16 13:20:11 2026", "%a %b %d %H:%M:%S %Y", &real), nullptr);
  real.tm_isdst = -1;
  EXPECT_EQ(left_by_qstat(recorded_answer("qstat -f 0.n1"), std::mktime(&real) + 60), seconds(3540));
  // Torque has no stime.
  note_unrecorded("qstat -f", "Torque");
  const std::string torque =
      "Job Id: 7.head\n    job_state = R\n    Resource_List.walltime = 02:00:00\n"
      "    start_time = Sun Nov 15 09:00:00 2026\n    start_count = 1\n";
  EXPECT_EQ(left_by_qstat(torque, began + 1800), seconds(5400));
  EXPECT_EQ(left_by_qstat(torque + "    Walltime.Remaining = 5390\n", began + 1800), seconds(5390));
}

TEST(SchedulerTest, TrustsTheEndThatTheLinkOfAChainFoundOut) {
  FakeScheduler site;
  site.set("LOCKSTEP_JOB_END", std::to_string(std::time(nullptr) + 100));
  EXPECT_EQ(seconds_left(), std::nullopt);  // in no job: left over from somewhere
  site.set("PBS_JOBID", "7.head");
  ASSERT_TRUE(seconds_left());
  EXPECT_NEAR(static_cast<double>(seconds_left()->count()), 100, 2);
}

}  // namespace
}  // namespace lockstep::site
