// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/pbs_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

using testing::HasSubstr;

// n1 has 2 of its 36 cores free, n2 34; one job waits in workq, none in small.
TEST(PbsStartTest, TellsOfAStartNowAloneAndSaysWhyNot) {
  const std::string queues = recorded_answer("qstat -Qf");
  const std::string server = recorded_answer("qstat -Bf");
  const std::string nodes = recorded_answer("pbsnodes -av");
  const auto forecast = [&](const PbsNeeds& needs) { return forecast_pbs_start(needs, queues, server, nodes, 1000); };
  EXPECT_EQ(forecast({.queue = "small", .nodes = 2, .cores = 2}).start, 1000);
  EXPECT_EQ(forecast({.queue = "small", .nodes = 1, .cores = 34, .memory = int64_t{187} << 30}).start, 1000);
  EXPECT_THAT(forecast({.queue = "small", .nodes = 2, .cores = 34}).refusal, HasSubstr("1 node is free for it now"));
  EXPECT_THAT(forecast({.queue = "small", .whole_nodes = true}).refusal, HasSubstr("0 nodes are free for it now"));
  EXPECT_THAT(forecast({.queue = "small", .gpus = 1}).refusal, HasSubstr("0 nodes are free"));
  EXPECT_THAT(forecast({.queue = ""}).refusal, HasSubstr("1 job waits in queue workq"));
  EXPECT_THAT(forecast({.queue = "stopped"}).refusal, HasSubstr("queue stopped is stopped"));
}

TEST(PbsStartTest, SaysThatTheServerIsAway) {
  FakeScheduler site;
  EXPECT_THAT(ask_pbs_start({.queue = "small"}).refusal, HasSubstr("does not tell of its queues"));
  site.install_recorded();
  EXPECT_TRUE(ask_pbs_start({.queue = "small"}).start);
  EXPECT_EQ(site.unrecorded_calls(), "");
}

}  // namespace
}  // namespace lockstep::site
