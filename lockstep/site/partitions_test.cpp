// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/partitions.h"

#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

TEST(PartitionsTest, ReadWhatSinfoSays) {
  const auto all = parse_sinfo(
      "boost*|1-00:00:00|3456|32|512000|gpu:a100:4(S:0-1),tmpdisk:100\n"
      "cpu|infinite|10|128+|256000|(null)\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Partition{.name = "boost",
                               .is_default = true,
                               .limit_seconds = 86400,
                               .nodes = 3456,
                               .cpus = 32,
                               .memory_mib = 512000,
                               .gpus = 4,
                               .gpu_type = "a100"}));
  EXPECT_EQ(all[1].limit_seconds, std::nullopt);
  EXPECT_EQ(all[1].cpus, 128);
  EXPECT_EQ(all[1].gpus, 0);
}

TEST(PartitionsTest, AreNoneWithoutSinfoOrWithoutSense) {
  FakeScheduler site;
  const auto slurm = [] { return read_partitions(SchedulerName::slurm); };
  EXPECT_TRUE(slurm().empty());
  site.install("sinfo", "slurm_load_partitions: Unable to contact slurm controller");
  EXPECT_TRUE(slurm().empty());
  site.install("sinfo", "main*|60:00|4|2|2000|gpu:2");
  ASSERT_EQ(slurm().size(), 1u);
  EXPECT_EQ(slurm()[0].limit_seconds, 3600);
  EXPECT_EQ(slurm()[0].gpus, 2);
  site.install_recorded();
  EXPECT_TRUE(read_partitions(SchedulerName::pbs).empty());  // Slurm's own qstat knows no queues
}

TEST(PartitionsTest, AreTheQueuesOfPbs) {
  FakeScheduler site;
  EXPECT_TRUE(read_partitions(SchedulerName::pbs).empty());
  site.install_recorded();
  const auto all = read_partitions(SchedulerName::pbs);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], (Partition{.name = "workq",
                               .is_default = true,
                               .limit_seconds = std::nullopt,
                               .nodes = 2,
                               .cpus = 36,
                               .memory_mib = 187 * 1024,
                               .gpu_type = ""}));
  EXPECT_EQ(all[1].limit_seconds, 3600);
  EXPECT_FALSE(all[1].is_default);
  EXPECT_FALSE(all[2].enabled);
  EXPECT_FALSE(all[3].started);
  EXPECT_EQ(site.unrecorded_calls(), "");
}

TEST(PartitionsTest, CountTheVnodesOfAHostAsOneNodeOfPbs) {
  note_unrecorded("pbsnodes", "vnodes, GPUs, a node of one queue alone");
  const std::string nodes =
      "g1[0]\n     resources_available.host = g1\n     resources_available.mem = 8gb\n"
      "     resources_available.ncpus = 8\n     resources_available.ngpus = 2\n     queue = gpu\n\n"
      "g1[1]\n     resources_available.host = g1\n     resources_available.mem = 8gb\n"
      "     resources_available.ncpus = 8\n     resources_available.ngpus = 2\n     queue = gpu\n\n"
      "c1\n     resources_available.host = c1\n     resources_available.ncpus = 4\n\n";
  const auto all = parse_pbs_queues("Queue: gpu\n    enabled = True\n\nQueue: cpu\n    enabled = True\n\n", "", nodes);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Partition{.name = "gpu",
                               .limit_seconds = std::nullopt,
                               .nodes = 1,
                               .cpus = 16,
                               .memory_mib = 16 * 1024,
                               .gpus = 4,
                               .gpu_type = ""}));
  EXPECT_EQ(all[1].cpus, 4);
  EXPECT_EQ(parse_pbs_queues("Queue: cpu\n    enabled = True\n", "", "").at(0).nodes, 0);
}

}  // namespace
}  // namespace lockstep::site
