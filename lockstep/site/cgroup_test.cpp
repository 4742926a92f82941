// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/cgroup.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

TEST(CgroupTest, FindsThePathOfAController) {
  const std::string both = "4:memory:/jobs/7\n2:cpu,cpuacct:/quota\n0::/unified/7\n";
  EXPECT_EQ(cgroup_path(both, "memory"), "/jobs/7");
  EXPECT_EQ(cgroup_path(both, "cpu"), "/quota");
  EXPECT_EQ(cgroup_path(both, ""), "/unified/7");
  EXPECT_EQ(cgroup_path(both, "blkio"), "");
}

TEST(CgroupTest, GivesASaneLimitOrNone) {
  const auto memory = cgroup_memory_limit();
  EXPECT_TRUE(!memory || *memory > (uint64_t{1} << 20)) << *memory;
  const auto cores = cgroup_cpu_quota();
  EXPECT_TRUE(!cores || *cores > 0) << *cores;
}

}  // namespace
}  // namespace lockstep::site
