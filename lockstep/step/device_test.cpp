// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/device.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::step {

TEST(DeviceTest, CpuNeedsNothing) {
  EXPECT_TRUE(open_device("cpu", 0).is_cpu());
}

TEST(DeviceTest, AnUnknownNameIsTheUsersError) {
  try {
    open_device("tpu", 0);
    FAIL() << "accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.message().find("cpu, cuda"), std::string::npos);
  }
}

site::GpuReport report_of(int capability, int cuda_major) {
  site::GpuReport report;
  report.driver = "550.54";
  report.cuda_major = cuda_major;
  report.cuda_minor = 4;
  report.devices = {{.name = "Tesla V100",
                     .memory_bytes = uint64_t{16} << 30,
                     .used_bytes = uint64_t{3} << 30,
                     .capability_major = capability / 10,
                     .capability_minor = capability % 10}};
  return report;
}

std::string refusal(const site::GpuReport& report, int64_t runtime) {
  try {
    check_gpu(report, 0, runtime);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    return error.message();
  }
  return "";
}

TEST(DeviceTest, AGpuOrADriverThatIsTooOldIsNamedBeforeItIsUsed) {
  EXPECT_NE(refusal(report_of(70, 13), 13000).find("compute capability 7.0"), std::string::npos);
  EXPECT_NE(refusal(report_of(90, 12), 13000).find("the driver 550.54 runs CUDA 12.4"), std::string::npos);
  EXPECT_EQ(refusal(report_of(75, 13), 13000), "");
  EXPECT_EQ(refusal(report_of(70, 12), 12060), "");
  EXPECT_EQ(refusal({}, 13000), "");  // no NVML: CUDA itself will say
}

TEST(DeviceTest, AnOldGpuBesideAnotherMayNotBeTheOneThatIsMeant) {
  auto report = report_of(70, 13);
  report.devices.push_back(report_of(90, 13).devices[0]);
  EXPECT_EQ(refusal(report, 13000), "");
}

TEST(DeviceTest, SaysWhoElseUsesTheGpu) {
  auto report = report_of(90, 13);
  EXPECT_NE(gpu_company(report, 0).find("3.22 GB of 17.2 GB are in use by others"), std::string::npos)
      << gpu_company(report, 0);
  report.devices[0].used_bytes = 1000;
  EXPECT_EQ(gpu_company(report, 0), "");
}

TEST(DeviceTest, AskingForCudaAfterSeedingIsCaughtAndNamed) {
  at::manual_seed(1);
  try {
    ensure_torch_sees_cuda();
    FAIL() << "not noticed";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::bug);
    EXPECT_NE(error.message().find("before its device was decided"), std::string::npos);
  }
}

TEST(DeviceTest, CudaAfterSeedingIsAnErrorOfOursOnAnyMachine) {
  at::manual_seed(1);
  EXPECT_THROW(open_device("cuda", 0), base::Error);
}

}  // namespace lockstep::step
