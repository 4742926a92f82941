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

std::vector<GpuDevice> four_gpus() {
  std::vector<GpuDevice> all(4);
  const char* uuids[] = {"GPU-8f1c0000-1", "GPU-8f2d0000-2", "GPU-77aa0000-3", "GPU-77ab0000-4"};
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].name = "NVIDIA A100";
    all[i].uuid = uuids[i];
  }
  return all;
}

TEST(NvmlTest, TheGpuOfCudaIsThatOfItsVariable) {
  const auto found = [](const char* visible, int64_t ordinal) {
    return find_cuda_gpu(four_gpus(), {.visible = visible}, ordinal);
  };
  EXPECT_EQ(find_cuda_gpu(four_gpus(), {}, 3), 3U);
  EXPECT_EQ(find_cuda_gpu(four_gpus(), {}, 4), std::nullopt);
  EXPECT_EQ(find_cuda_gpu({}, {}, 0), std::nullopt);
  EXPECT_EQ(found("2,0", 0), 2U);
  EXPECT_EQ(found("2, 0", 1), 0U);
  EXPECT_EQ(found("GPU-77ab0000-4,GPU-8f2", 0), 3U);
  EXPECT_EQ(found("GPU-77ab0000-4,GPU-8f2", 1), 1U);
  for (const char* none : {"", "-1", "NoDevFiles", "4", "GPU-8f", "GPU-9", "MIG-8f1c0000-1", "MIG-GPU-8f1c0000-1/1/0",
                           "2x", "99999999999999999999", "gpu-8f1c"}) {
    EXPECT_EQ(found(none, 0), std::nullopt) << none;
  }
  EXPECT_EQ(found("1,-1,0", 1), std::nullopt);
  EXPECT_EQ(found("1", -1), std::nullopt);
}

TEST(NvmlTest, WhereCudaCountsAnotherWayANumberSaysNothing) {
  auto devices = four_gpus();
  devices[3].name = "NVIDIA T4";
  EXPECT_EQ(find_cuda_gpu(devices, {}, 0), std::nullopt);  // the fastest comes first
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "3"}, 0), std::nullopt);
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "3", .order = "PCI_BUS_ID"}, 0), 3U);
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "GPU-77ab"}, 0), 3U);
  devices = four_gpus();
  devices[1].is_cut = true;
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "1"}, 0), std::nullopt);
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "GPU-8f2d"}, 0), std::nullopt);
  EXPECT_EQ(find_cuda_gpu(devices, {.visible = "GPU-8f1c"}, 0), 0U);
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
