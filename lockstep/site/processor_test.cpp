// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/processor.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

TEST(ProcessorTest, CountsSocketsCoresAndThreads) {
  std::string cpuinfo;
  for (int thread = 0; thread < 8; ++thread) {  // 2 sockets x 2 cores x 2 threads
    cpuinfo += "processor\t: " + std::to_string(thread) + "\nmodel name\t: AMD EPYC 7742 64-Core Processor\n";
    cpuinfo += "physical id\t: " + std::to_string(thread % 2) + "\ncore id\t\t: " + std::to_string(thread / 2 % 2);
    cpuinfo += "\nflags\t\t: fpu avx avx2 fma\n\n";
  }
  const Processor found = parse_cpuinfo(cpuinfo);
  EXPECT_EQ(found.model, "AMD EPYC 7742 64-Core Processor");
  EXPECT_EQ(found.sockets, 2);
  EXPECT_EQ(found.cores, 4);
  EXPECT_EQ(found.threads, 8);
  EXPECT_EQ(found.vector_units, std::vector<std::string>{"avx2"});
  EXPECT_TRUE(found.has("avx2"));
  EXPECT_FALSE(found.has("avx512f"));
}

TEST(ProcessorTest, LivesWithACpuinfoWithoutIds) {
  const Processor found = parse_cpuinfo("processor : 0\n\nprocessor : 1\n");
  EXPECT_EQ(found.threads, 2);
  EXPECT_EQ(found.cores, 2);
  EXPECT_EQ(found.sockets, 1);
}

TEST(ProcessorTest, ReadsThisMachine) {
  const Processor found = read_processor();
  EXPECT_GE(found.threads, found.usable);
  EXPECT_GE(found.usable, 1);
  EXPECT_GE(found.numa_nodes, 1);
}

}  // namespace
}  // namespace lockstep::site
