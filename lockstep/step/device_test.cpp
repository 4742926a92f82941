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
