// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/kernel/update.h"
#include "lockstep/trace/trace.h"
#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

spec::Job small_job(spec::OptimizerName optimizer) {
  spec::Job job;
  job.model.name = "resnet18";
  job.model.classes = 10;
  job.data.image_size = 32;
  job.training.global_batch = 8;
  job.training.precision = spec::Precision::bf16;
  job.training.ema_decay = 0.9;
  job.training.optimizer.name = optimizer;
  return job;
}

int64_t runs_of(const forecast::Recording& recording, const std::string& name) {
  return std::count_if(recording.events.begin(), recording.events.end(), [&](const forecast::Event& event) {
    return event.kind == forecast::EventKind::run && recording.operators[static_cast<size_t>(event.id)].name == name;
  });
}

TEST(UpdatesTest, AStepAloneIsUpdatedOnTheGpuAndCastsNoWeight) {
  const auto recording = trace_step(small_job(spec::OptimizerName::sgd));
  EXPECT_EQ(runs_of(recording, "lockstep::sgd_step"), 3 * 2);  // with and without weight decay
  EXPECT_EQ(runs_of(recording, "lockstep::judge_step"), 3);
  EXPECT_EQ(runs_of(recording, "lockstep::follow_average"), 3);
  EXPECT_EQ(runs_of(recording, "aten::_fused_sgd_"), 0);
  EXPECT_TRUE(recording.estimated.empty()) << recording.estimated.front();
  EXPECT_TRUE(recording.captured);
  EXPECT_EQ(runs_of(trace_step(small_job(spec::OptimizerName::adamw)), "lockstep::adamw_step"), 3 * 2);
}

TEST(UpdatesTest, SeveralRanksAndReferenceKernelsAreAsEver) {
  const auto several = trace_step(small_job(spec::OptimizerName::sgd), {.ranks = 2});
  EXPECT_GT(runs_of(several, "aten::_fused_sgd_"), 0);
  EXPECT_FALSE(several.captured);
  auto job = small_job(spec::OptimizerName::sgd);
  job.training.kernels = spec::Kernels::reference;
  const auto reference = trace_step(job);
  EXPECT_GT(runs_of(reference, "aten::_fused_sgd_"), 0);
  EXPECT_FALSE(reference.captured);
  EXPECT_FALSE(trace_step(small_job(spec::OptimizerName::sgd), {.graph = false}).captured) << "of a short run";
}

TEST(UpdatesTest, TheNormHasItsScratchMemory) {
  const WatchedDevice watched;
  const at::Tensor norm = kernel::gradient_norm({on_gpu({kernel::UpdateGrid::kChunk + 1}, at::kFloat)});
  EXPECT_EQ(norm.numel(), 1);
}

}  // namespace
}  // namespace lockstep::trace
