// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/memory.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

TEST(MemoryTest, ReadsMeminfo) {
  const Memory found = parse_meminfo("MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\nHugePages: x\n");
  EXPECT_EQ(found.total, 1024u << 10);
  EXPECT_EQ(found.available, 512u << 10);
}

TEST(MemoryTest, IsBoundByTheTighterOfMachineAndGroup) {
  Memory memory{.total = 100, .available = 50, .group_limit = std::nullopt, .shared = std::nullopt, .shared_free = 0};
  EXPECT_EQ(memory.usable(), 100u);
  memory.group_limit = 40;
  EXPECT_EQ(memory.usable(), 40u);
  memory.group_limit = 400;
  EXPECT_EQ(memory.usable(), 100u);
}

TEST(MemoryTest, ReadsThisMachine) {
  EXPECT_GT(read_memory().total, uint64_t{1} << 20);
}

}  // namespace
}  // namespace lockstep::site
