// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::comm {
namespace {

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(LauncherTest, WithoutALauncherTheProcessIsAlone) {
  EXPECT_FALSE(launched_by_mpi());
  EXPECT_EQ(join_group()->size(), 1);
}

TEST_F(LauncherTest, MpirunWithTwoRanksIsSeen) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_TRUE(launched_by_mpi());
}

TEST_F(LauncherTest, MpirunWithOneRankNeedsNoMpi) {
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_FALSE(launched_by_mpi());
}

TEST_F(LauncherTest, ABatchShellOfManyTasksIsNoRank) {
  setenv("SLURM_NTASKS", "8", 1);
  EXPECT_FALSE(launched_by_mpi());
  setenv("PMIX_RANK", "3", 1);
  EXPECT_TRUE(launched_by_mpi());
}

}  // namespace
}  // namespace lockstep::comm
