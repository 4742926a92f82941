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
  EXPECT_TRUE(read_partitions().empty());
  site.install("sinfo", "slurm_load_partitions: Unable to contact slurm controller");
  EXPECT_TRUE(read_partitions().empty());
  site.install("sinfo", "main*|60:00|4|2|2000|gpu:2");
  ASSERT_EQ(read_partitions().size(), 1u);
  EXPECT_EQ(read_partitions()[0].limit_seconds, 3600);
  EXPECT_EQ(read_partitions()[0].gpus, 2);
}

}  // namespace
}  // namespace lockstep::site
