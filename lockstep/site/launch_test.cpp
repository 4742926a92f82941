// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep::site {
namespace {

class LaunchTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

 private:
  static void clear() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                             "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "SLURM_NTASKS",
                             "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(LaunchTest, IsAloneWithoutALauncher) {
  EXPECT_EQ(read_launch(), Launch{});
}

TEST_F(LaunchTest, KnowsItsPlaceUnderMpirun) {
  set("OMPI_COMM_WORLD_SIZE", "4");
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  EXPECT_EQ(read_launch(), (Launch{.has_company = true, .local_rank = 1, .local_size = 2}));
}

TEST_F(LaunchTest, HasNoCompanyWithOneRank) {
  set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_FALSE(read_launch().has_company);
}

TEST_F(LaunchTest, TakesABatchShellOfManyTasksForNoRank) {
  set("SLURM_NTASKS", "8");
  EXPECT_EQ(read_launch(), Launch{});
  set("PMIX_RANK", "3");
  set("SLURM_LOCALID", "3");
  set("SLURM_STEP_TASKS_PER_NODE", "4(x2)");
  EXPECT_EQ(read_launch(), (Launch{.has_company = true, .local_rank = 3, .local_size = 4}));
}

}  // namespace
}  // namespace lockstep::site
