// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/cpu_load.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::advice {
namespace {

TEST(CpuLoadTest, GoesByCoresAndByClockWhereItIsKnown) {
  catalogue::Cpu cpu;
  cpu.cores = 32;
  cpu.base_ghz = 3.0;
  EXPECT_DOUBLE_EQ(hours_on(parse_cpu_load("psp=72@96"), cpu), 216);
  EXPECT_DOUBLE_EQ(hours_on(parse_cpu_load("psp=72@96x1.5GHz"), cpu), 108);
}

TEST(CpuLoadTest, RefusesWhatIsNotATiming) {
  for (const char* wrong : {"psp", "psp=72", "=72@96", "psp=x@96", "psp=72@0", "psp=72@96x", "psp=72@96xfast"}) {
    EXPECT_THROW(parse_cpu_load(wrong), base::Error) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::advice
