// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/probe.h"

#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

TEST(ProbeTest, KnowsThisMachineInASecondOrTwo) {
  const FakeScheduler laptop;
  const auto start = std::chrono::steady_clock::now();
  const Probe found = probe_site();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_GE(found.threads, 1);
  ASSERT_FALSE(found.storages.empty());
  EXPECT_EQ(found.storages.front().role.substr(0, 4), "here");
  EXPECT_TRUE(found.storages.front().write_rate.has_value());
}

TEST(ProbeTest, TouchesNoDiskOnALoginNode) {
  FakeScheduler site;
  site.install("sbatch");
  const Probe found = probe_site();
  EXPECT_TRUE(found.scheduler.login_node());
  EXPECT_EQ(found.storages.front().write_rate, std::nullopt);
  EXPECT_EQ(found.storages.front().read_rate, std::nullopt);
  EXPECT_LE(found.threads, 2);
}

}  // namespace
}  // namespace lockstep::site
