// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/nvml.h"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

TEST(NvmlTest, GivesDevicesOrSaysWhyThereAreNone) {
  const GpuReport report = read_gpus();
  EXPECT_EQ(report.devices.empty(), !report.absent.empty()) << report.absent;
  for (const auto& device : report.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.memory_bytes, uint64_t{1} << 28);
    EXPECT_GE(device.capability_major, 3);
  }
}

TEST(NvmlTest, APowerMeterReadsOrKnowsNothing) {
  const PowerMeter meter(0);
  const bool gpus = !read_gpus().devices.empty();
  if (!gpus) {
    EXPECT_FALSE(meter.watts());
    EXPECT_FALSE(meter.joules());
  } else if (meter.watts()) {  // some GPUs do not say
    EXPECT_GT(*meter.watts(), 1);
  }
  EXPECT_FALSE(PowerMeter(1000).watts());
}

}  // namespace
}  // namespace lockstep::site
