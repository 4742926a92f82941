// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace lockstep::ranks {
namespace {

using ::testing::HasSubstr;
using Kind = Fault::Kind;

// Three ranks in the middle of step 18: all have started five collectives and none waits.
std::vector<Observation> well() {
  std::vector<Observation> ranks;
  for (int64_t i = 0; i < 3; ++i) {
    run::Heartbeat heartbeat;
    heartbeat.rank = i;
    heartbeat.who.host = i < 2 ? "n1" : "n2";
    heartbeat.step = 17;
    heartbeat.phase = run::Phase::computing;
    heartbeat.longest = 0.5;
    heartbeat.calls = heartbeat.answered = 5;
    ranks.push_back({heartbeat, 0.5, 0.5});
  }
  return ranks;
}

void waits(Observation& rank, double still) {
  rank.heartbeat->call = "all-reduce";
  rank.heartbeat->calls = 6;
  rank.still = still;
}

TEST(VerdictTest, RanksThatGetOnAreWell) {
  EXPECT_FALSE(find_fault(well(), {}));
}

TEST(VerdictTest, AKilledRankIsNamedAtOnceWithHostAndStep) {
  auto ranks = well();
  ranks[2].heartbeat->end = run::RankEnd{.signal = SIGKILL, .peak_bytes = 3'000'000'000};
  waits(ranks[0], 1);
  const auto fault = find_fault(ranks, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::dead);
  EXPECT_EQ(fault->rank, 2);
  EXPECT_EQ(fault->host, "n2");
  EXPECT_EQ(fault->step, 17);
  EXPECT_EQ(fault->call, "all-reduce");
  EXPECT_THAT(fault->what, HasSubstr("rank 2 on n2 was killed by SIGKILL, after step 17"));
  EXPECT_THAT(fault->what, HasSubstr("held 3 GB"));
  EXPECT_THAT(fault->what, HasSubstr("rank 0 waits in all-reduce number 6"));
}

TEST(VerdictTest, TheKernelsOwnKillIsCalledWantOfMemory) {
  auto ranks = well();
  ranks[1].heartbeat->end = run::RankEnd{.signal = SIGKILL, .out_of_memory = true};
  EXPECT_EQ(find_fault(ranks, {})->kind, Kind::out_of_memory);
}

TEST(VerdictTest, WhoeverWasToldToGoIsNotTheCause) {
  auto ranks = well();
  ranks[0].heartbeat->end = run::RankEnd{.signal = SIGKILL, .asked = true};
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[1].heartbeat->end = run::RankEnd{.signal = SIGSEGV};
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);
}

TEST(VerdictTest, OwnErrorsAndOrderlyEndsAreNoFaults) {
  for (const int code : {0, 85, 2, 3, 4}) {
    auto ranks = well();
    ranks[0].heartbeat->end = run::RankEnd{.code = code};
    EXPECT_FALSE(find_fault(ranks, {})) << code;
  }
}

TEST(VerdictTest, ARankThatLostAPeerComesAfterThePeer) {
  auto ranks = well();
  ranks[0].heartbeat->end = run::RankEnd{.code = 3};
  ranks[0].heartbeat->call_failed = true;
  EXPECT_EQ(find_fault(ranks, {})->rank, 0);
  ranks[1].heartbeat->end = run::RankEnd{.signal = SIGKILL};
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);
}

TEST(VerdictTest, ASilentRankIsNamedAfterTenSeconds) {
  auto ranks = well();
  ranks[1].silent = 9.9;
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[1].silent = 10.1;
  EXPECT_EQ(find_fault(ranks, {})->kind, Kind::silent);
  ranks[1].heartbeat->stopped = true;
  EXPECT_EQ(find_fault(ranks, {})->kind, Kind::stopped);
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);
}

TEST(VerdictTest, ARankThatIsLeavingMayBeSilentForLonger) {
  auto ranks = well();
  ranks[1].heartbeat->phase = run::Phase::ending;
  ranks[1].silent = 99;
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[1].silent = 101;
  EXPECT_EQ(find_fault(ranks, {})->kind, Kind::silent);
}

TEST(VerdictTest, TheRankThatDidNotComeHangsNotThoseThatWait) {
  auto ranks = well();
  waits(ranks[0], 51);
  waits(ranks[2], 51);
  ranks[1].still = 49;
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[1].still = 51;
  const auto fault = find_fault(ranks, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::hung);
  EXPECT_EQ(fault->rank, 1);
  EXPECT_EQ(fault->calls, 6);
  EXPECT_THAT(fault->what, HasSubstr("rank 1 on n1 hangs after step 17, computing, 51 s"));
  EXPECT_THAT(fault->what, HasSubstr("ranks 0, 2 wait in all-reduce number 6"));
}

TEST(VerdictTest, LongStepsLongSavesAndTheFirstStepHaveTime) {
  auto ranks = well();
  waits(ranks[0], 200);
  waits(ranks[2], 200);
  ranks[1].still = 200;
  ranks[1].heartbeat->longest = 60;
  EXPECT_FALSE(find_fault(ranks, {}));  // its steps take a minute
  ranks[1].heartbeat->longest = 0;
  EXPECT_FALSE(find_fault(ranks, {}));  // nobody knows yet how long they take
  ranks[1].heartbeat->phase = run::Phase::saving;
  ranks[1].still = 550;
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[1].still = 650;
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);
}

TEST(VerdictTest, WhenAllWaitInTheSameCollectiveItIsTheNetwork) {
  auto ranks = well();
  for (auto& rank : ranks) waits(rank, 51);
  const auto fault = find_fault(ranks, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::network);
  EXPECT_EQ(fault->rank, -1);
  EXPECT_THAT(fault->what, HasSubstr("all ranks wait in all-reduce number 6 for 51 s, after step 17"));
}

// Ranks on GPUs tell of a collective only when their host waits for it.
TEST(VerdictTest, WhereNobodyTellsWhoWaitsNobodyIsBlamed) {
  auto ranks = well();
  ranks[0].still = 47, ranks[1].still = 50.2, ranks[2].still = 49.9;
  for (auto& rank : ranks) rank.heartbeat->calls_whole = false;
  auto fault = find_fault(ranks, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Kind::hung);
  EXPECT_EQ(fault->rank, -1);
  EXPECT_EQ(fault->host, "");
  EXPECT_FALSE(fault->to_json().contains("host"));
  EXPECT_THAT(fault->what, HasSubstr("ranks 0, 1, 2 stand still after step 17, computing, 50 s without getting on"));
  for (auto& rank : ranks) rank.heartbeat->calls_whole = true, rank.heartbeat->calls = rank.heartbeat->answered = 0;
  EXPECT_EQ(find_fault(ranks, {})->rank, -1);  // before the first collective nobody can tell either
  for (auto& rank : ranks) rank.heartbeat->calls = 5;
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);  // who tells all and is in none computes
}

TEST(VerdictTest, OnGpusTooTheRankThatDidNotComeIsNamed) {
  auto ranks = well();
  for (auto& rank : ranks) rank.heartbeat->calls_whole = false;
  waits(ranks[0], 51);
  waits(ranks[2], 51);
  ranks[1].still = 51;
  EXPECT_EQ(find_fault(ranks, {})->rank, 1);
  ranks[2] = ranks[1];  // in front of the same collective: one of these two waits for the other
  ranks[2].heartbeat->rank = 2;
  const auto fault = find_fault(ranks, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->rank, -1);
  EXPECT_THAT(fault->what, HasSubstr("ranks 1, 2 stand still"));
  EXPECT_THAT(fault->what, HasSubstr("rank 0 waits in all-reduce number 6"));
}

TEST(VerdictTest, ARankThatNeverSpokeIsNamed) {
  auto ranks = well();
  ranks[2].heartbeat.reset();
  ranks[2].silent = 299;
  EXPECT_FALSE(find_fault(ranks, {}));
  ranks[2].silent = 301;
  EXPECT_EQ(find_fault(ranks, {})->kind, Kind::not_started);
  EXPECT_EQ(find_fault(ranks, {})->rank, 2);
}

TEST(VerdictTest, AFaultIsWrittenDownWithEverythingKnown) {
  auto ranks = well();
  waits(ranks[0], 60);
  waits(ranks[2], 60);
  ranks[1].still = 60;
  const base::Json json = find_fault(ranks, {})->to_json();
  EXPECT_EQ(json.at("why").as_string(), "hung");
  EXPECT_EQ(json.at("rank").as_int(), 1);
  EXPECT_EQ(json.at("host").as_string(), "n1");
  EXPECT_EQ(json.at("step").as_int(), 17);
  EXPECT_EQ(json.at("call").as_string(), "all-reduce");
}

}  // namespace
}  // namespace lockstep::ranks
