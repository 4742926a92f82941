// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"

namespace lockstep::ranks {
namespace {

using ::testing::HasSubstr;

TEST(RestartRuleTest, GoesOnWhileCheckpointsGetNewer) {
  RestartRule rule(100);
  for (int64_t step = 0; step < 50; ++step) {
    ASSERT_EQ(rule.refusal(step), "");
    rule.count(step);
  }
  EXPECT_EQ(rule.done(), 50);
}

TEST(RestartRuleTest, StopsAfterTwoRestartsFromTheSameCheckpoint) {
  RestartRule rule(100);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(rule.refusal(7), "");
    rule.count(7);
  }
  EXPECT_THAT(rule.refusal(7), HasSubstr("2 restarts went on from step 7"));
  EXPECT_EQ(rule.refusal(8), "");
}

TEST(RestartRuleTest, StopsAtTheNumberThatTheUserGave) {
  RestartRule rule(1);
  rule.count(5);
  EXPECT_THAT(rule.refusal(9), HasSubstr("--restarts allows 1"));
  EXPECT_THAT(RestartRule(0).refusal(0), HasSubstr("--restarts allows 0"));
}

// Ranks that die in the step behind each save, before the journal tells of it, come further every time.
TEST(NewestSaveTest, CountsACheckpointThatTheJournalDoesNotTellOfYet) {
  const base::TemporaryFolder folder;
  const run::RunPaths paths{folder.path()};
  EXPECT_EQ(newest_save(folder.path()).step, 0);
  base::Json told = base::Json::object();
  told["step"] = 4;
  run::Journal journal(paths.journal());
  journal.append("start", base::Json::object());
  journal.append("save", told);
  run::CheckpointStore store(paths.checkpoints());
  run::Save save;
  save.state = base::Json::object();
  save.keep = 3;
  RestartRule rule(100);
  for (save.step = 4; save.step <= 9; ++save.step) {
    store.save(save);
    const Saved saved = newest_save(folder.path());
    EXPECT_EQ(saved.step, save.step);
    EXPECT_NEAR(saved.time, static_cast<double>(std::time(nullptr)), 60);
    ASSERT_EQ(rule.refusal(saved.step), "");
    rule.count(saved.step);
  }
}

TEST(NewestSaveTest, BelievesTheJournalWhereTheFolderIsNotThere) {
  const base::TemporaryFolder folder;
  base::Json told = base::Json::object();
  told["step"] = 4;
  run::Journal(run::RunPaths{folder.path()}.journal()).append("save", told);
  EXPECT_EQ(newest_save(folder.path()).step, 4);
}

TEST(HostsTest, LeavesAHostOutWithItsRanks) {
  Hosts hosts(5, {"n1", "n2", "n3"});
  EXPECT_TRUE(hosts.leave_out("n1.site.org"));
  EXPECT_EQ(hosts.ranks(), 3);
  EXPECT_EQ(hosts.shares(), (std::vector<site::Share>{{"n2", 2}, {"n3", 1}}));
  EXPECT_FALSE(hosts.leave_out("n1"));
  EXPECT_TRUE(hosts.leave_out("n3"));
  EXPECT_FALSE(hosts.leave_out("n2"));  // the last one stays
  EXPECT_EQ(hosts.ranks(), 2);
  EXPECT_EQ(hosts.left_out(), (std::vector<std::string>{"n1", "n3"}));
}

TEST(HostsTest, OneHostAloneIsNeverNamedToTheLauncher) {
  Hosts hosts(4, {"n1"});
  EXPECT_TRUE(hosts.shares().empty());
  EXPECT_FALSE(hosts.leave_out("n1"));
  EXPECT_EQ(hosts.ranks(), 4);
}

TEST(HostsTest, AHostIsBlamedForItsSecondRank) {
  Hosts hosts(4, {"n1", "n2"});
  EXPECT_FALSE(hosts.blame("n2"));
  EXPECT_FALSE(hosts.blame("n1"));
  EXPECT_FALSE(hosts.blame(""));
  EXPECT_TRUE(hosts.blame("n2"));
}

TEST(DeadHostsTest, AreAskedAFewAtATime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 50; ++i) hosts.push_back("n" + std::to_string(i));
  std::atomic<int> now{0}, most{0};
  const auto dead = dead_hosts(hosts, [&](const std::string& host) {
    const int beside = ++now;
    for (int seen = most; seen < beside && !most.compare_exchange_weak(seen, beside);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --now;
    return host != "n7" && host != "n40";
  });
  EXPECT_EQ(dead, (std::vector<std::string>{"n7", "n40"}));
  EXPECT_LE(most, 16);
}

TEST(DeadHostsTest, AreNoneWhenNobodyAnswersTheAskingHost) {
  EXPECT_TRUE(dead_hosts({"n1", "n2", "n3"}, [](const std::string&) { return false; }).empty());
}

TEST(HostsTest, NamesTheHostsToBlameAsTheSchedulerDoes) {
  const std::vector<std::string> allocated{"n1", "n2", "n3"};
  Hosts hosts(3, allocated);
  hosts.leave_out("n2");
  EXPECT_EQ(hosts.to_blame("n1.site.org", allocated), (std::vector<std::string>{"n2", "n1"}));
  EXPECT_EQ(hosts.to_blame("n2", allocated), (std::vector<std::string>{"n2"}));
  EXPECT_EQ(hosts.to_blame("laptop", allocated), (std::vector<std::string>{"n2"}));
  EXPECT_EQ(Hosts(2, {"n1"}).to_blame("n1", {"n1"}), (std::vector<std::string>{"n1"}));
  // All ranks gone at once, with nobody left to tell of them: where there is one host, it was that one.
  EXPECT_EQ(Hosts(2, {"n1"}).to_blame("", {"n1"}), (std::vector<std::string>{"n1"}));
  EXPECT_TRUE(Hosts(2, {"n1", "n2"}).to_blame("", {"n1", "n2"}).empty());
  EXPECT_TRUE(Hosts(2, {}).to_blame("here", {}).empty());  // no allocation
}

TEST(SupervisorTest, ARunThatSomebodyElseHoldsIsLeftAlone) {
  const base::TemporaryFolder folder;
  const run::RunFolder held(folder.path());
  Supervision order;
  order.run = folder.path();
  order.wait_for_folder = 0.2;
  order.say = [](const std::string&) {};
  EXPECT_THROW(supervise(order), base::Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "ranks"));
}

}  // namespace
}  // namespace lockstep::ranks
