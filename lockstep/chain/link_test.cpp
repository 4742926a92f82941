// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/small_disk.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::chain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Slurm's commands as scripts that write down how they were called: what the real ones do is shown in tests/slurm.
class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    slurm_.set("SLURM_JOB_ID", "11");
    command("sbatch", "echo 12");
    command("scancel", "");
    command("squeue", "");
    ChainTerms terms;
    terms.name = "pets-0a1b2c";
    terms.max_links = 3;
    terms.patience = 2;
    terms.walltime = 600;
    ChainRecord(run()).open(terms);
    base::write_file(run() / "submit.sh", "#!/bin/bash\n");
  }

  const base::Path& run() const { return folder_.path(); }
  void command(const std::string& name, const std::string& does) {
    slurm_.install_script(name, base::text("echo ", name, " \"$@\" >> '", (run() / "calls").string(), "'\n", does));
  }
  std::string calls() const { return std::filesystem::exists(run() / "calls") ? base::read_file(run() / "calls") : ""; }
  void saved(int64_t step) {
    base::Json fields = base::Json::object();
    fields["step"] = step;
    run::Journal(run() / "journal.jsonl").append("save", fields);
  }
  int link(int code, int64_t step_after = 0) {
    LinkOptions options;
    options.run = [&](const std::vector<std::string>& words) {
      ran_ = words;
      calls_before_work_ = calls();
      seconds_left_ = site::seconds_left();
      if (step_after > 0) saved(step_after);
      if (meanwhile_) meanwhile_();
      return code;
    };
    options.say = [&](std::string_view line) { said_ += std::string(line) + "\n"; };
    return run_link(run(), {"train"}, options);
  }

  base::TemporaryFolder folder_;
  site::FakeScheduler slurm_;
  std::vector<std::string> ran_;
  std::string calls_before_work_;
  std::string said_;
  std::function<void()> meanwhile_;                   // what else happens while the training runs
  std::optional<std::chrono::seconds> seconds_left_;  // as the training sees it
};

TEST_F(LinkTest, QueuesItsSuccessorBeforeItWorks) {
  EXPECT_EQ(link(85, 40), kExitNextLink);
  EXPECT_THAT(calls_before_work_, HasSubstr("sbatch --parsable --dependency=afternotok:11 --kill-on-invalid-dep=yes"));
  EXPECT_THAT(ran_, ElementsAre("train"));
  EXPECT_THAT(calls(), testing::Not(HasSubstr("scancel")));
  const Chain chain = read_chain(run());
  EXPECT_THAT(chain.queued, testing::Contains("12"));
  EXPECT_EQ(chain.links[0].step_after, 40);
  EXPECT_EQ(chain.over, "");
}

// In a folder where a group may write: a script that others can write to would run as this user.
TEST_F(LinkTest, QueuesNoScriptThatOthersCanWriteTo) {
  std::filesystem::permissions(run() / "submit.sh", std::filesystem::perms(0775));
  EXPECT_EQ(link(85, 40), kExitNextLink);
  EXPECT_THAT(calls(), testing::Not(HasSubstr("sbatch")));
  EXPECT_THAT(said_, HasSubstr("submit.sh can be written by others"));
  EXPECT_THAT(ran_, ElementsAre("train"));
  std::filesystem::rename(run() / "submit.sh", run() / "other.sh");
  std::filesystem::create_symlink("other.sh", run() / "submit.sh");
  link(85, 50);
  EXPECT_THAT(calls(), testing::Not(HasSubstr("sbatch")));
  EXPECT_THAT(said_, HasSubstr("submit.sh: this is a link"));
}

TEST_F(LinkTest, TheEnvironmentReachesTheContainersOfOtherNodes) {
  EXPECT_THAT(with_environment({"srun", "x"}), ElementsAre("srun", "x"));
  EXPECT_THAT(with_environment({"/opt/lockstep", "train"}), ElementsAre("/opt/lockstep", "train"));
  slurm_.set("LOCKSTEP_JOB_END", "1");
  const std::string line = base::join(with_environment({"mpirun", "-n", "2", "apptainer", "exec", "x.sif"}), " ");
  EXPECT_THAT(line, testing::AllOf(testing::StartsWith("mpirun -x "), HasSubstr("-x LOCKSTEP_JOB_END "),
                                   HasSubstr("-x PATH "), testing::EndsWith(" -n 2 apptainer exec x.sif")));
}

// A node that dies in between must leave a successor, not a link that has begun without one.
TEST_F(LinkTest, QueuesItsSuccessorBeforeItIsWrittenDownAsBegun) {
  const std::string chain = chain_file(run()).string();
  command("sbatch",
          base::text("while read -r line; do echo \"$line\"; done < '", chain, "' > '", chain, ".then'; echo 12"));
  std::string then;
  meanwhile_ = [&] { then = base::read_file(chain + ".then"); };
  link(85, 40);
  EXPECT_THAT(then, HasSubstr("\"event\":\"chain\""));
  EXPECT_THAT(then, testing::Not(HasSubstr("\"event\":\"begin\"")));
  const std::string now = base::read_file(chain);
  EXPECT_LT(now.find("\"event\":\"queued\""), now.find("\"event\":\"begin\""));
}

TEST_F(LinkTest, StartedAgainItQueuesTheSuccessorThatItsFirstStartDidNot) {
  command("squeue", "exit 1");  // nobody tells what waits
  ChainRecord(run()).begin("11", 1, 0, "n1");
  link(85, 40);
  EXPECT_THAT(calls_before_work_, HasSubstr("afternotok:11"));
  std::filesystem::remove(run() / "calls");
  link(85, 50);  // now there is one
  EXPECT_THAT(calls(), testing::Not(HasSubstr("sbatch")));
}

TEST_F(LinkTest, ASuccessorThatCannotBeWrittenDownIsTakenBack) {
  ChainRecord(run()).refused("9", std::string(10000, 'x'));  // the calls of the commands stay smaller
  const run::SmallDisk full(std::filesystem::file_size(chain_file(run())));
  EXPECT_THROW(link(85, 40), base::Error);
  EXPECT_THAT(calls(), HasSubstr("sbatch"));
  EXPECT_THAT(calls(), HasSubstr("scancel 12\n"));
  EXPECT_TRUE(ran_.empty());
}

TEST_F(LinkTest, CancelsItsSuccessorWhenTheRunIsDone) {
  command("squeue", "echo '11|RUNNING|None|N/A|N/A|n1'; echo '12|PENDING|Dependency|N/A|N/A|'");
  EXPECT_EQ(link(0, 90), 0);
  EXPECT_THAT(calls(), HasSubstr("scancel 12\n"));
  EXPECT_EQ(read_chain(run()).over, "done");
}

TEST_F(LinkTest, CancelsItOnPbsByTheNumberItGot) {
  ChainTerms pbs = read_chain(run()).terms;
  pbs.scheduler = site::SchedulerName::pbs;
  ChainRecord(run()).open(pbs);
  ::unsetenv("SLURM_JOB_ID");
  slurm_.set("PBS_JOBID", "42.n1");
  slurm_.install_recorded({"qsub -W depend=afternotok:42.n1 * => qsub -N notok -W depend=afternotok:42.n1 link.sh",
                           "qstat -f 45.n1 => qstat -f 3.n1", "qstat -f 42.n1 => qstat 17.n1",
                           "qdel 3.n1 => qdel 39.n1"});
  EXPECT_EQ(link(0, 90), 0);
  EXPECT_THAT(slurm_.calls(), HasSubstr("qdel 3.n1\n"));
  EXPECT_EQ(slurm_.unrecorded_calls(), "");
}

// What the memory limit ended has saved and said that it stopped in time: the next link is the first that can know.
TEST_F(LinkTest, EndsTheChainBehindAJobThatTheMemoryLimitEnded) {
  ChainTerms pbs = read_chain(run()).terms;
  pbs.scheduler = site::SchedulerName::pbs;
  const auto chain_of = [&](const std::string& job) {
    ChainRecord record(run());
    record.open(pbs);
    record.queued(job, "");
    record.begin(job, 1, 0, "n2");
    record.finish(job, 85, 40);
  };
  ::unsetenv("SLURM_JOB_ID");
  slurm_.set("PBS_JOBID", "44.n1");
  slurm_.install_recorded({"qstat -f 13.n1 => qstat 17.n1", "qstat -f 12.n1 => qstat 17.n1"});
  chain_of("13.n1");
  EXPECT_EQ(link(85, 50), 2);
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(read_chain(run()).over, "memory");
  EXPECT_THAT(read_chain(run()).closing_words,
              testing::AllOf(HasSubstr("job 13.n1 used more memory than it had asked for"),
                             HasSubstr("exceeded resource mem, exit status -27"), HasSubstr("scheduler.memory=")));
  EXPECT_EQ(slurm_.unrecorded_calls(), "");

  // Where the site keeps no history, the job's own output says it.
  slurm_.install_recorded({"qstat -f 12.n1 => qstat 17.n1", "qstat -x -f 12.n1 => qstat -x 10.n1"});
  chain_of("12.n1");
  base::write_file(run() / "pets-0a1b2c.o12", site::recorded_answer("cat fat.e13"));
  EXPECT_EQ(link(85, 50), 2);
  EXPECT_THAT(said_, HasSubstr("(job killed: mem 423548kb exceeded limit 51200kb)"));

  base::write_file(run() / "pets-0a1b2c.o12", site::recorded_answer("cat slow.e12"));  // its walltime
  slurm_.install_recorded({"qstat -f * => qstat 17.n1", "qstat -x -f 12.n1 => qstat -x 10.n1",
                           "qsub -W depend=afternotok:44.n1 * => qsub -N notok -W depend=afternotok:42.n1 link.sh"});
  chain_of("12.n1");
  EXPECT_EQ(link(85, 60), kExitNextLink);
  EXPECT_FALSE(ran_.empty());
}

TEST_F(LinkTest, LeavesTimeToTakeTheRanksOfSeveralNodesBack) {
  const int64_t end = static_cast<int64_t>(base::unix_seconds()) + 500;
  const auto told_end = [] {
    const char* told = std::getenv("LOCKSTEP_JOB_END");
    return told ? std::stoll(told) : 0;
  };
  slurm_.set("SLURM_JOB_END_TIME", std::to_string(end));
  slurm_.set("SLURM_JOB_NODELIST", "n1");
  link(85, 40);
  EXPECT_NEAR(static_cast<double>(told_end() - end), 0, 2);
  slurm_.set("SLURM_JOB_NODELIST", "n[1-2]");
  link(85, 50);
  EXPECT_NEAR(static_cast<double>(told_end() - end), -10, 2);
}

TEST_F(LinkTest, KnowsSlurmsWordForMissingMemory) {
  ChainRecord record(run());
  record.begin("10", 1, 0, "n1");
  record.finish("10", 137, 20);
  command("scontrol", "echo JobId=10 JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125");
  EXPECT_EQ(link(85, 50), 2);
  EXPECT_THAT(read_chain(run()).closing_words, HasSubstr("OUT_OF_MEMORY, OutOfMemory, exit code 0:125"));
}

TEST_F(LinkTest, CancelsItAlsoWhenAPersonMustAct) {
  command("squeue", "echo '12|PENDING|Dependency|N/A|N/A|'");
  for (const int code : {2, 3, 4}) EXPECT_EQ(verdict_of(code), Verdict::failed);
  EXPECT_EQ(link(2), 2);
  EXPECT_THAT(calls(), HasSubstr("scancel 12\n"));
  EXPECT_EQ(read_chain(run()).over, "failed");
}

TEST_F(LinkTest, LeavesACrashToTheNextLink) {
  EXPECT_EQ(link(137), 137);
  EXPECT_EQ(read_chain(run()).over, "");
}

TEST_F(LinkTest, FindsItsSuccessorWhenTheSchedulerStartsItAgain) {
  link(137);
  command("squeue", "echo '11|RUNNING|None|N/A|N/A|n1'; echo '12|PENDING|Dependency|N/A|N/A|'");
  std::filesystem::remove(run() / "calls");
  link(85, 40);
  EXPECT_THAT(calls(), testing::Not(HasSubstr("sbatch")));
  EXPECT_EQ(read_chain(run()).links.size(), 1u);
}

TEST_F(LinkTest, DoesNothingWhenTheChainIsOver) {
  ChainRecord(run()).close("cancelled", 0, {});
  EXPECT_EQ(link(0), 0);
  EXPECT_TRUE(ran_.empty());
  EXPECT_THAT(said_, HasSubstr("the chain is over (cancelled)"));
}

TEST_F(LinkTest, StopsAtTheCap) {
  for (const char* job : {"11", "12", "13"}) {
    slurm_.set("SLURM_JOB_ID", job);
    EXPECT_EQ(link(85, std::stoll(job)), kExitNextLink);
  }
  EXPECT_EQ(read_chain(run()).over, "cap");
  EXPECT_THAT(calls_before_work_, testing::Not(HasSubstr("afternotok:13")));  // the last one queues none
}

TEST_F(LinkTest, StopsWithoutProgress) {
  link(85);
  slurm_.set("SLURM_JOB_ID", "12");
  link(85);
  slurm_.set("SLURM_JOB_ID", "13");
  ran_.clear();
  EXPECT_EQ(link(85), 3);
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(read_chain(run()).over, "no progress");
  EXPECT_THAT(said_, HasSubstr("2 links in a row brought no new step"));
}

TEST_F(LinkTest, TrainsAlsoWhereTheSiteRefusesItsSuccessor) {
  command("sbatch", "echo 'sbatch: error: Access denied' >&2; exit 1");
  EXPECT_EQ(link(85, 40), kExitNextLink);
  EXPECT_THAT(ran_, ElementsAre("train"));
  EXPECT_EQ(read_chain(run()).first_refusal, "sbatch: error: Access denied");
  EXPECT_THAT(said_, HasSubstr("submit_from=login"));
}

TEST_F(LinkTest, TellsTheTrainingWhenTheJobEnds) {
  slurm_.set("LOCKSTEP_JOB_END", "1");  // of the link that queued this one
  command("squeue", "exit 1");          // no answer: the walltime counts
  link(85);
  ASSERT_TRUE(seconds_left_);
  EXPECT_NEAR(static_cast<double>(seconds_left_->count()), 600, 60);
  EXPECT_THAT(base::read_file(run() / "calls"), HasSubstr("squeue -h -j 11 -o %L"));
  command("squeue", "echo 42:00");
  link(85);
  EXPECT_NEAR(static_cast<double>(seconds_left_->count()), 42 * 60, 60);
}

TEST_F(LinkTest, BelongsIntoAJob) {
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_THROW(link(0), base::Error);
}

TEST_F(LinkTest, TakesOverFromADeadNodeOnly) {
  const auto lock = [&](const std::string& host, const std::string& job) {
    base::write_file(run() / "lock",
                     R"({"host":")" + host + R"(","pid":1,"pid_start":1,"since":"now","job":")" + job + R"("})");
  };
  ChainRecord(run()).begin("10", 1, 0, "n9");
  for (const char* job : {"", "77"}) {  // somebody else's process; on a shared node another job's
    lock("n9", job);
    EXPECT_FALSE(free_dead_lock(run(), read_chain(run()), {}));
    EXPECT_TRUE(std::filesystem::exists(run() / "lock"));
  }
  lock("n9", "10");
  site::BatchJob leaving;
  leaving.id = "10";
  leaving.state = site::BatchJob::State::ending;
  EXPECT_FALSE(free_dead_lock(run(), read_chain(run()), {leaving}));
  command("squeue", "exit 1");  // nobody knows whether job 10 still runs
  link(85);
  EXPECT_TRUE(std::filesystem::exists(run() / "lock"));
  base::make_folders(run() / "ranks");
  std::filesystem::copy_file(run() / "lock", run() / "ranks/lock");  // the supervisor's
  ChainRecord(run()).begin("12", 3, 0, "n9");
  command("squeue", "");
  link(85);
  EXPECT_FALSE(std::filesystem::exists(run() / "lock"));
  EXPECT_FALSE(std::filesystem::exists(run() / "ranks/lock"));
}

TEST_F(LinkTest, QueuesNobodyWhenTheChainWasCancelledMeanwhile) {
  meanwhile_ = [&] {
    ChainRecord(run()).close("cancelled", 0, {});
    std::filesystem::remove(run() / "calls");
  };
  EXPECT_EQ(link(85, 40), 0);
  EXPECT_THAT(calls(), testing::Not(HasSubstr("sbatch")));
  EXPECT_EQ(read_chain(run()).over, "cancelled");
  EXPECT_THAT(said_, testing::Not(HasSubstr("the next link goes on")));
}

TEST_F(LinkTest, SaysWhenNoLinkIsLeft) {
  link(85, 40);
  EXPECT_THAT(said_, HasSubstr("the next link goes on"));
  said_.clear();
  command("sbatch", "echo 'sbatch: error: Access denied' >&2; exit 1");
  link(85, 50);
  EXPECT_THAT(said_, HasSubstr("no link is left in the queue"));
  said_.clear();
  meanwhile_ = [&] { command("squeue", "exit 1"); };
  link(85, 60);
  EXPECT_THAT(said_, HasSubstr("the scheduler does not say"));
}

TEST_F(LinkTest, GoesOnElsewhereWhenRanksFailAgainAndAgainOnAHost) {
  saved(20);
  const auto give_up = [&](const char* why) {
    return [this, why] {
      base::Json fields = base::Json::object();
      fields["why"] = why;
      fields["hosts"] = base::Json::array_of(std::vector<std::string>{"n3"});
      run::Journal(run() / "journal.jsonl").append("gave_up", fields);
      command("squeue", "case $* in *%x) echo n4;; *) echo '12|PENDING|Dependency|N/A|N/A|';; esac");
    };
  };
  command("scontrol", "");
  meanwhile_ = give_up("hung");
  EXPECT_EQ(link(3), 3);
  EXPECT_EQ(read_chain(run()).over, "");
  EXPECT_THAT(read_chain(run()).bad_hosts, ElementsAre("n3"));
  EXPECT_THAT(calls(), HasSubstr("scontrol update JobId=12 ExcNodeList=n4,n3\n"));
  EXPECT_THAT(calls(), testing::Not(HasSubstr("scancel")));
  // The next one keeps its own successor away too, and ends the chain when an error of its own is told.
  slurm_.set("SLURM_JOB_ID", "12");
  command("squeue", "");
  command("sbatch", "echo 13");
  meanwhile_ = nullptr;
  EXPECT_EQ(link(3), 3);
  EXPECT_THAT(calls(), HasSubstr("scontrol update JobId=13 ExcNodeList=n3\n"));
  EXPECT_EQ(read_chain(run()).over, "failed");
}

TEST_F(LinkTest, EndsTheChainWhereMemoryIsMissingOrNothingEverStarted) {
  for (const char* why : {"out_of_memory", "not_started"}) {
    ChainRecord(run()).open(read_chain(run()).terms);
    meanwhile_ = [&] {
      base::Json fields = base::Json::object();
      fields["why"] = why;
      run::Journal(run() / "journal.jsonl").append("gave_up", fields);
    };
    EXPECT_EQ(link(3), 3);
    EXPECT_EQ(read_chain(run()).over, "failed") << why;
  }
}

TEST_F(LinkTest, HearsASignalBeforeItHasASuccessor) {
  ::signal(SIGTERM, SIG_DFL);  // as in a process that has just begun
  const std::string once = (run() / "once").string();
  command("squeue", base::text("[ -e '", once, "' ] || { : > '", once, "'; kill -TERM ", ::getpid(), "; }"));
  LinkOptions options;
  options.run = run_and_hand_on_signals;
  options.say = [](std::string_view) {};
  EXPECT_EQ(run_link(run(), {"sh", "-c", "exit 0"}, options), kExitNextLink);
  EXPECT_THAT(read_chain(run()).queued, testing::Contains("12"));
  EXPECT_EQ(read_chain(run()).links[0].code, 85);
}

TEST_F(LinkTest, LeavesARunningLinkAlone) {
  ChainRecord(run()).begin("10", 1, 0, "n9");
  command("squeue", "echo '10|RUNNING|None|N/A|N/A|n9'");
  EXPECT_EQ(link(0), 0);
  EXPECT_TRUE(ran_.empty());
  EXPECT_EQ(read_chain(run()).over, "");
  EXPECT_THAT(said_, HasSubstr("job 10 of this chain is running"));
}

TEST_F(LinkTest, QueuesItsSuccessorOnceMoreWhenItWasForgotten) {
  link(85, 40);  // squeue shows nobody else, neither before nor after
  size_t times = 0;
  for (const auto& line : base::split(calls(), '\n')) times += line.find("afternotok:11") != std::string::npos;
  EXPECT_EQ(times, 2u);
}

TEST(LinkCommandTest, TellsHowItEnded) {
  EXPECT_EQ(run_and_hand_on_signals({"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(run_and_hand_on_signals({"no-such-program-anywhere"}), 127);
}

TEST(LinkCommandTest, HandsSignalsOn) {
  const base::TemporaryFolder folder;
  const base::Path ready = folder.path() / "ready";
  std::jthread sender([&] {
    while (!std::filesystem::exists(ready)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(::getpid(), SIGUSR1);
  });
  const std::string script = "trap 'exit 85' USR1; : > '" + ready.string() + "'; while :; do sleep 0.01; done";
  EXPECT_EQ(run_and_hand_on_signals({"sh", "-c", script}), 85);
}

TEST(LinkCommandTest, AsksABareMpirunToPassTheWishOn) {
  const base::TemporaryFolder folder;
  const base::Path ready = folder.path() / "ready", mpirun = folder.path() / "mpirun";
  base::write_file(mpirun, "#!/bin/sh\ntrap 'exit 85' USR1; trap 'exit 1' TERM; : > '" + ready.string() +
                               "'; while :; do sleep 0.01; done\n");
  std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
  std::jthread sender([&] {
    while (!std::filesystem::exists(ready)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(run_and_hand_on_signals({mpirun.string(), "-n", "2"}), 85);
}

}  // namespace
}  // namespace lockstep::chain
