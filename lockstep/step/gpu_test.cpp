// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::step {
namespace {

TEST(GpuTest, TheProcessorIsNoGpu) {
  EXPECT_THROW(Gpu(at::kCPU), base::Error);
}

// Opens and links on any machine that has the wheels; without a GPU it answers in words instead of ending the process.
TEST(GpuTest, ThePluginOpensAndFailsInWords) {
  const lockstep_cuda* plugin = nullptr;
  try {
    plugin = &open_cuda_plugin();
  } catch (const base::Error& error) {
    GTEST_SKIP() << error.what();  // built without the CUDA wheels
  }
  EXPECT_EQ(plugin->version, LOCKSTEP_CUDA_VERSION);
  int64_t free = -1;
  int64_t total = -1;
  if (plugin->memory_info(&free, &total) == 0) {
    EXPECT_GE(total, free);
  } else {
    EXPECT_STRNE(plugin->failure(), "");
    lockstep_cuda_event* event = nullptr;
    EXPECT_EQ(plugin->event_create(&event), -1);
  }
  const lockstep_cuda_act* acts = nullptr;
  int64_t count = -1;
  EXPECT_EQ(plugin->history_mark(7), 0);  // not started: nothing is written
  EXPECT_EQ(plugin->history_take(&acts, &count), 0);
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace lockstep::step
