// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/simulated_device.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

// torch asks for CUDA once and remembers the answer: the GPU must be there before any test of this binary uses torch.
class DeviceFirst : public testing::Environment {
  void SetUp() override { const WatchedDevice watched; }
};
[[maybe_unused]] const auto* const kDeviceFirst = testing::AddGlobalTestEnvironment(new DeviceFirst);

TEST(SimulatedDeviceTest, TensorsAreCudaTensorsWithoutBytes) {
  const WatchedDevice watched;
  const at::Tensor tensor = at::zeros({4, 5}, at::TensorOptions(at::kCUDA));
  EXPECT_TRUE(tensor.is_cuda());
  EXPECT_EQ(tensor.device(), SimulatedDevice::device());
  EXPECT_EQ(tensor.nbytes(), 80);
  EXPECT_EQ(tensor.const_data_ptr(), nullptr);
}

TEST(SimulatedDeviceTest, TellsOfBirthsRunsAndDeaths) {
  WatchedDevice watched;
  {
    const at::Tensor a = on_gpu({256});
    const at::Tensor b = a + a;
  }
  const auto recording = watched.finish();
  std::vector<forecast::EventKind> kinds;
  for (const auto& event : recording.events) kinds.push_back(event.kind);
  using forecast::EventKind;
  EXPECT_EQ(kinds,
            (std::vector{EventKind::birth, EventKind::birth, EventKind::run, EventKind::death, EventKind::death}));
  EXPECT_EQ(recording.operators[0].name, "aten::add");
  EXPECT_EQ(recording.operators[0].bytes, 3 * 1024);
}

TEST(SimulatedDeviceTest, AViewIsNoStorage) {
  WatchedDevice watched;
  const at::Tensor a = on_gpu({4, 6});
  const at::Tensor b = a.t().narrow(0, 1, 2).unsqueeze(0).view({1, 2, 4});
  EXPECT_EQ(storage_id(a), storage_id(b));
  EXPECT_EQ(watched.finish().events.size(), 1);
}

TEST(SimulatedDeviceTest, CpuTensorsAreUntouched) {
  const WatchedDevice watched;
  const at::Tensor a = at::zeros({3}) + 2;
  EXPECT_EQ(a.sum().item<double>(), 6);
}

}  // namespace
}  // namespace lockstep::trace
