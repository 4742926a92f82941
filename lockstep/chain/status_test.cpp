// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/status.h"
#include "lockstep/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/script.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::chain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StatusTest : public testing::Test {
 protected:
  StatusTest() {
    ChainTerms terms;
    terms.name = queue_name(run());
    terms.max_links = 5;
    ChainRecord record(run());
    record.open(terms);
    record.queued("11", "");
    record.begin("11", 1, 0, "n1");
    record.queued("12", "11");
    record.finish("11", 85, 40);
    record.begin("12", 2, 40, "n2");
    record.queued("13", "12");
    queue("12|RUNNING|None|2026-11-15T17:00:00|N/A|n2\n13|PENDING|Dependency|N/A|N/A|");
  }

  const base::Path& run() const { return folder_.path(); }
  void queue(const std::string& rows) {
    slurm_.install_script("squeue", base::text("echo asked >> '", (run() / "asked").string(), "'\necho '", rows, "'"));
  }
  size_t times_asked() const { return base::split(base::read_file(run() / "asked"), '\n').size() - 1; }

  base::TemporaryFolder folder_;
  site::FakeScheduler slurm_;
};

TEST_F(StatusTest, AsksTheSchedulerOnceAMinuteAtMost) {
  const double now = base::unix_seconds();
  for (int i = 0; i < 100; ++i) read_status(run(), now + 0.5 * i);
  EXPECT_EQ(times_asked(), 1u);
  EXPECT_THAT(to_text(read_status(run(), now + 42), now + 42), HasSubstr("asked 42 s ago"));
  EXPECT_EQ(times_asked(), 1u);
  read_status(run(), now + kAskEverySeconds);
  EXPECT_EQ(times_asked(), 2u);
}

TEST_F(StatusTest, TellsLinksAndQueue) {
  const double now = base::unix_seconds();
  const std::string shown = to_text(read_status(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("link 2 of at most 5, step 0 saved"));
  EXPECT_THAT(shown, HasSubstr("stopped in time"));
  EXPECT_THAT(shown, HasSubstr("job 13 PENDING (Dependency), asked 0 s ago"));
  const base::Json json = to_json(read_status(run(), now), now);
  EXPECT_EQ(json.at("links").size(), 2u);
  EXPECT_EQ(json.at("queue").at("jobs").items()[0].string_or("state", ""), "running");
}

TEST_F(StatusTest, SaysWhenTheSchedulerIsSilent) {
  slurm_.install_script("squeue", "exit 1");
  const double now = base::unix_seconds();
  const std::string shown = to_text(read_status(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("slurm did not answer"));
  EXPECT_THAT(shown, HasSubstr("not known"));  // link 2 may well be running
  EXPECT_THAT(shown, testing::Not(HasSubstr("killed")));
}

TEST_F(StatusTest, TellsOfJobsThatEndedBeforeTheirScriptBegan) {
  ChainRecord record(run());
  ChainTerms terms;
  terms.max_links = 50;
  record.open(terms);
  record.queued("2", "");
  slurm_.install_script("squeue", "");
  slurm_.install("scontrol", "JobId=2 JobState=FAILED Reason=JobLaunchFailure ExitCode=0:53");
  const double now = base::unix_seconds();
  std::string shown = to_text(read_status(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("no link of at most 50 has begun, step 0 saved"));
  EXPECT_THAT(
      shown, HasSubstr(base::text("job 2 ended before its script began (FAILED, JobLaunchFailure, exit code 0:53): is ",
                                  run().string(), " on a file system that the nodes see?")));
  EXPECT_THAT(shown, testing::Not(HasSubstr("to go on")));  // it would fail alike for ever
  EXPECT_THAT(to_json(read_status(run(), now), now).at("queue").at("gone").items()[0].as_string(), "2");

  // One queued since the scheduler was asked is not gone, and what it said is kept when it has forgotten the job.
  record.queued("3", "");
  EXPECT_THAT(read_status(run(), now + 1).queue.gone, ElementsAre("2"));
  queue("3|PENDING|Priority|N/A|N/A|");
  slurm_.install_script("scontrol", "exit 1");
  shown = to_text(read_status(run(), now + kAskEverySeconds), now + kAskEverySeconds);
  EXPECT_THAT(shown, HasSubstr("JobLaunchFailure"));
  EXPECT_THAT(shown, HasSubstr("job 3 PENDING (Priority)"));
}

TEST_F(StatusTest, AJobThatSomebodyCancelledMayBeSubmittedAgain) {
  ChainRecord record(run());
  record.open({});
  record.queued("2", "");
  record.queued("3", "");
  slurm_.install_script("squeue", "");
  slurm_.install("scontrol", "JobState=CANCELLED Reason=None ExitCode=0:0");
  const double now = base::unix_seconds();
  const std::string shown = to_text(read_status(run(), now), now);
  EXPECT_THAT(shown, HasSubstr("jobs 2, 3 ended before their script began (3: CANCELLED)\n"));
  EXPECT_THAT(shown, HasSubstr("submit it again to go on"));
}

TEST_F(StatusTest, SendsToTheOutputOfAScriptThatFailedByItself) {
  base::write_file(run() / "link-13.out", "module: command not found\n");
  queue("12|RUNNING|None|2026-11-15T17:00:00|N/A|n2");
  const double now = base::unix_seconds();
  EXPECT_THAT(
      to_text(read_status(run(), now), now),
      HasSubstr(base::text("job 13 ended before its training began: ", run().string(), "/link-13.out says why")));
}

// The same over the answers of a real PBS server.
class PbsStatusTest : public testing::Test {
 protected:
  PbsStatusTest() {
    ChainTerms terms;
    terms.name = "pets-0a1b2c";
    terms.scheduler = site::SchedulerName::pbs;
    terms.max_links = 5;
    ChainRecord(run()).open(terms);
  }
  const base::Path& run() const { return folder_.path(); }
  std::string shown() const {
    const double now = base::unix_seconds();
    return to_text(read_status(run(), now), now);
  }

  base::TemporaryFolder folder_;
  site::FakeScheduler pbs_;
};

TEST_F(PbsStatusTest, TellsWhyAJobWaitsInOneLine) {
  ChainRecord(run()).queued("1.n1", "");
  pbs_.install_recorded();
  EXPECT_THAT(shown(),
              HasSubstr("job 1.n1 Q (Not Running: Insufficient amount of resource: ncpus (R: 72 A: 36 T: 72))"));
}

TEST_F(PbsStatusTest, ShowsWhatPbsWroteOfAJobThatNeverBegan) {
  ChainRecord(run()).queued("16.n1", "");
  base::write_file(run() / "pets-0a1b2c.o16", site::recorded_answer("cat inside.o16"));
  pbs_.install_recorded({"qstat -f 16.n1 => qstat 17.n1"});
  EXPECT_THAT(shown(),
              HasSubstr("job 16.n1 ended before its script began (Job run at Mon Nov 16 at 13:20 on (n2:ncpus=2) "
                        "and failed, exit status -2): PBS wrote \"Could not chdir to home directory\"\n"));
}

TEST_F(PbsStatusTest, SaysThatADeletedLinkTakesThoseBehindItAlong) {
  for (const char* id : {"39.n1", "40.n1", "41.n1"}) ChainRecord(run()).queued(id, "");
  pbs_.install_recorded(
      {"qstat -f 39.n1 40.n1 41.n1 => qstat 17.n1", "qstat -x -f 41.n1 => 13: qstat -x -f 9.n1 | $KEY"});
  EXPECT_THAT(shown(), HasSubstr("jobs 39.n1, 40.n1, 41.n1 ended before their script began (41.n1: ended by the server "
                                 "before it ran: the job that it waited for was deleted, or is unknown): PBS ends all "
                                 "links behind a waiting one that is deleted\n"));
  EXPECT_THAT(shown(), HasSubstr("submit it again to go on"));
}

TEST_F(PbsStatusTest, AMemoryKillIsNoStopInTime) {
  ChainRecord record(run());
  record.queued("13.n1", "");
  record.begin("13.n1", 1, 0, "n2");
  record.queued("3.n1", "13.n1");
  record.finish("13.n1", 85, 40);
  pbs_.install_recorded({"qstat -f 13.n1 3.n1 => qstat -f 3.n1"});
  EXPECT_THAT(shown(), testing::AllOf(HasSubstr("killed for its memory"), HasSubstr("scheduler.memory="),
                                      HasSubstr("exceeded resource mem"), testing::Not(HasSubstr("stopped in time"))));
  // Without a history the output of the job has it.
  std::filesystem::remove(run() / "queue.json");
  pbs_.install_recorded({"qstat -f 13.n1 3.n1 => qstat -f 3.n1", "qstat -x -f 13.n1 => qstat -x 10.n1"});
  EXPECT_THAT(shown(), HasSubstr("stopped in time"));
  std::filesystem::remove(run() / "queue.json");
  base::write_file(run() / "pets-0a1b2c.o13", site::recorded_answer("cat fat.e13"));
  EXPECT_THAT(shown(), testing::AllOf(HasSubstr("killed for its memory"),
                                      HasSubstr("PBS ended it: mem 423548kb exceeded limit 51200kb")));
}

TEST_F(PbsStatusTest, AServerThatIsAwayForAMomentHidesNoMemoryKill) {
  ChainRecord record(run());
  record.queued("13.n1", "");
  record.begin("13.n1", 1, 0, "n2");
  record.finish("13.n1", 85, 40);
  const double now = base::unix_seconds();
  const auto shown_at = [&](double when) { return to_text(read_status(run(), when), when); };
  pbs_.install_recorded({"qstat -f 13.n1 => qstat 17.n1", "qstat -x -f 13.n1 => 12: qstat -f 0.n1"});
  EXPECT_THAT(shown_at(now), HasSubstr("stopped in time"));
  pbs_.install_recorded({"qstat -f 13.n1 => qstat 17.n1"});
  EXPECT_THAT(shown_at(now + kAskEverySeconds), HasSubstr("killed for its memory"));
  pbs_.install_recorded({"qstat -f 13.n1 => qstat 17.n1", "qstat -x -f 13.n1 => 12: qstat -f 0.n1"});
  EXPECT_THAT(shown_at(now + 2 * kAskEverySeconds), HasSubstr("killed for its memory"));  // it is asked no more
}

// As `qsig -s USR1` leaves it: the link wrote no end, and PBS says 256 and the number of the signal.
TEST_F(PbsStatusTest, NamesTheSignalThatEndedALinkUnsaved) {
  ChainRecord record(run());
  record.queued("14.n1", "");
  record.begin("14.n1", 1, 0, "n1");
  const std::string keys = "grep -E 'Job Id|job_state|depend|Hold_Types|substate|Exit_status|comment'";
  pbs_.install_recorded({"qstat -f 14.n1 => qstat 17.n1", "qstat -x -f 14.n1 => 14: qstat -x -f 14.n1 | " + keys});
  EXPECT_THAT(shown(), testing::AllOf(HasSubstr("killed by SIGUSR1\n"),
                                      HasSubstr("job 14.n1 was ended by SIGUSR1 and could not save: qsig ends the "
                                                "job's shell. To stop with a save: lockstep submit --cancel " +
                                                run().string() + ", or qdel\n"),
                                      HasSubstr("submit it again to go on")));
  EXPECT_THAT(shown(), HasSubstr("killed by SIGUSR1\n"));  // out of what was kept
  EXPECT_EQ(pbs_.unrecorded_calls(), "");
}

// Whoever could write the record, or put that of another run there, would choose whose jobs end.
TEST_F(StatusTest, CancelsNoJobThatSomebodyElseMayHaveNamed) {
  slurm_.install_script("scancel", base::text("echo \"$@\" >> '", (run() / "cancelled").string(), "'"));
  const auto refused = [&] {
    try {
      cancel_chain(run());
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string();
  };
  ChainTerms forged;
  forged.name = "my-thesis";
  ChainRecord(run()).open(forged);
  EXPECT_THAT(refused(), HasSubstr("chain.jsonl is of jobs named 'my-thesis', those of this folder are '"));
  EXPECT_THAT(refused(), HasSubstr("fix: look at squeue --me, then scancel --name=my-thesis"));
  forged.name = queue_name(run());
  ChainRecord(run()).open(forged);
  std::filesystem::permissions(chain_file(run()), std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(refused(), HasSubstr("chain.jsonl can be written by others"));
  EXPECT_EQ(read_chain(run()).over, "");
  EXPECT_FALSE(std::filesystem::exists(run() / "cancelled"));
}

TEST_F(StatusTest, CancelsTheWaitingLinksFirst) {
  slurm_.install_script("scancel", base::text("echo \"$@\" >> '", (run() / "cancelled").string(), "'"));
  EXPECT_THAT(cancel_chain(run()), ElementsAre("13", "12"));
  EXPECT_EQ(base::read_file(run() / "cancelled"), "13\n12\n");
  EXPECT_EQ(read_chain(run()).over, "cancelled");
}

}  // namespace
}  // namespace lockstep::chain
