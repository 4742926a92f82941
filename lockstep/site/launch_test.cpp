// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    for (const char* name : {"OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "PMI_SIZE",
                             "PMI_RANK",
                             "PMIX_RANK",
                             "MPI_LOCALNRANKS",
                             "MPI_LOCALRANKID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_PROCID",
                             "OMPI_COMM_WORLD_RANK",
                             "SLURMD_NODENAME",
                             "OMPI_MCA_mca_base_env_list",
                             "LOCKSTEP_PASS",
                             "MY_SITE_SETTING",
                             "MY_OTHER_SETTING",
                             "UCX_TLS"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(LaunchTest, IsAloneWithoutALauncher) {
  EXPECT_EQ(read_launch(), Launch{});
}

TEST_F(LaunchTest, KnowsItsPlaceUnderMpirun) {
  set("OMPI_COMM_WORLD_SIZE", "4");
  set("OMPI_COMM_WORLD_RANK", "3");
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  EXPECT_EQ(read_launch(), (Launch{true, 1, 2, 3, 4, "Open MPI's mpirun"}));
}

TEST_F(LaunchTest, NamesOfTheEnvironmentWhatRanksElsewhereNeed) {
  set("LOCKSTEP_PASS", "MY_SITE_SETTING,NOT_SET");
  set("MY_SITE_SETTING", "two words; and more");
  set("MY_OTHER_SETTING", "1");
  set("UCX_TLS", "rc");
  const auto words = pass_words();
  const auto has = [&](const char* name) {
    const auto found = std::find(words.begin(), words.end(), name);
    return found != words.end() && *(found - 1) == "-x";
  };
  for (const char* name : {"LOCKSTEP_PASS", "MY_SITE_SETTING", "PATH", "UCX_TLS"}) EXPECT_TRUE(has(name)) << name;
  for (const char* name : {"MY_OTHER_SETTING", "NOT_SET", "HOME"}) EXPECT_FALSE(has(name)) << name;
  set("OMPI_MCA_mca_base_env_list", "B=1");  // Open MPI refuses both
  EXPECT_TRUE(pass_words().empty());
}

TEST_F(LaunchTest, HasNoCompanyWithOneRank) {
  set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_FALSE(read_launch().has_company);
}

TEST_F(LaunchTest, KnowsItsPlaceUnderHydra) {
  set("PMI_SIZE", "3");
  set("PMI_RANK", "2");
  set("MPI_LOCALNRANKS", "3");
  set("MPI_LOCALRANKID", "2");
  EXPECT_EQ(read_launch(), (Launch{true, 2, 3, 2, 3, "Hydra's mpiexec", true}));
}

TEST_F(LaunchTest, TakesABatchShellOfManyTasksForNoRank) {
  set("SLURM_NTASKS", "8");
  set("SLURM_PROCID", "0");
  EXPECT_EQ(read_launch(), Launch{});
}

TEST_F(LaunchTest, KnowsItsPlaceUnderSrunWithPmix) {
  set("SLURM_NTASKS", "8");
  set("SLURM_PROCID", "7");
  set("PMIX_RANK", "7");
  set("SLURM_LOCALID", "3");
  set("SLURM_STEP_TASKS_PER_NODE", "4(x2)");
  EXPECT_EQ(read_launch(), (Launch{true, 3, 4, 7, 8, "srun", true}));
}

TEST_F(LaunchTest, ATaskOfSrunHasCompanyWithoutAnyPmi) {
  set("SLURM_NTASKS", "2");
  set("SLURM_STEP_NUM_TASKS", "2");
  set("SLURM_STEP_TASKS_PER_NODE", "2");
  set("SLURM_PROCID", "1");
  set("SLURM_LOCALID", "1");
  EXPECT_EQ(read_launch(), (Launch{true, 1, 2, 1, 2, "srun"}));
}

TEST_F(LaunchTest, AnMpirunInsideAStepIsTheOneThatCounts) {
  set("SLURM_STEP_NUM_TASKS", "1");
  set("SLURM_NTASKS", "1");
  set("OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_EQ(read_launch().size, 4);
}

TEST_F(LaunchTest, OneMachineThatPlaysSeveralNodesHasSeveralNames) {
  const std::string alone = node_name();
  EXPECT_FALSE(alone.empty());
  set("SLURMD_NODENAME", "n1");
  const std::string first = node_name();
  set("SLURMD_NODENAME", "n2");
  EXPECT_EQ(node_name(), alone + "/n2");
  EXPECT_NE(node_name(), first);
}

}  // namespace
}  // namespace lockstep::site
