// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/worker_slot.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::ranks {
namespace {

TEST(WorkerSlotTest, OnlyAWatchedProcessHasOne) {
  EXPECT_FALSE(my_worker_slot("run"));
  ::setenv(kWorldVariable, "seven", 1);
  const auto in_run = my_worker_slot("run");
  ::setenv(kHeartbeatsVariable, "elsewhere", 1);
  const auto beside = my_worker_slot("run");
  ::unsetenv(kWorldVariable);
  ::unsetenv(kHeartbeatsVariable);
  ASSERT_TRUE(in_run && beside);
  EXPECT_EQ(in_run->world, "seven");
  EXPECT_EQ(in_run->heartbeat, run::heartbeat_path("run", 0));
  EXPECT_EQ(beside->heartbeat, run::heartbeat_path("elsewhere", 0));
  EXPECT_EQ(beside->latest, run::world_path("elsewhere"));
}

TEST(WorkerSlotTest, ASignalThatTheSupervisorPassedOnKeepsItsName) {
  const base::TemporaryFolder folder;
  base::make_folders(folder.path() / "ranks");
  EXPECT_EQ(stop_reason("SIGUSR1", folder.path()), "SIGUSR1");  // nobody watches
  ::setenv(kWorldVariable, "seven", 1);
  EXPECT_EQ(stop_reason("SIGUSR1", folder.path()), "SIGUSR1");  // nothing is said
  base::write_file(run::stop_path(folder.path()), "SIGTERM");
  EXPECT_EQ(stop_reason("SIGUSR1", folder.path()), "SIGTERM");
  EXPECT_EQ(stop_reason("SIGHUP", folder.path()), "SIGHUP");  // its own
  EXPECT_EQ(stop_reason("", folder.path()), "");
  ::unsetenv(kWorldVariable);
}

}  // namespace
}  // namespace lockstep::ranks
