// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(NvmlTest, TheUsableGpusAreThoseThatCudaSees) {
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string kept = before ? before : "";
  using Names = std::vector<std::string>;
  for (const auto& [visible, names] : {std::pair<const char*, Names>{"", {}},
                                       {"-1", {}},
                                       {"NoDevFiles", {}},
                                       {"2, 0", {"2", "0"}},
                                       {"GPU-8f1c,MIG-2", {"GPU-8f1c", "MIG-2"}},
                                       {"1,-1,0", {"1"}}}) {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    EXPECT_EQ(usable_gpus(), names) << visible;
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(usable_gpus().size(), read_gpus().devices.size());
  if (before) ::setenv("CUDA_VISIBLE_DEVICES", kept.c_str(), 1);
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
