// SPDX-License-Identifier: Apache-2.0
// What large batches bring is seen by the plan too.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/trace/trace.h"

namespace lockstep::trace {
namespace {

using forecast::EventKind;
using forecast::MemoryClass;
using forecast::Recording;

spec::Job large_batch_job(const std::string& model) {
  spec::Job job;
  job.data.train = "synthetic";
  job.model.name = model;
  job.model.classes = 10;
  job.training.global_batch = 8;
  return job;
}

int64_t lasting_bytes(const Recording& recording, MemoryClass memory) {
  int64_t bytes = 0;
  for (const auto& event : recording.events) {
    if (event.kind == EventKind::birth && event.memory == memory) bytes += event.bytes;
  }
  return bytes;
}

int64_t calls_of(const Recording& recording, const std::string& name) {
  return std::count_if(recording.events.begin(), recording.events.end(), [&](const auto& event) {
    return event.kind == EventKind::run &&
           recording.operators[static_cast<size_t>(event.id)].name.find(name) != std::string::npos;
  });
}

TEST(LargeBatchTraceTest, ABatchThatNoHostCouldHoldIsTracedLikeOthers) {
  spec::Job job = large_batch_job("linear");
  job.training.global_batch = 16'000'000;  // 2.4 TB of pixels
  const Recording recording = trace_step(job, {.steps = 1});
  EXPECT_GE(lasting_bytes(recording, MemoryClass::inputs), job.training.global_batch * 3 * 224 * 224);
}

TEST(LargeBatchTraceTest, LarsHoldsOneMomentAndLambTwo) {
  for (const char* model : {"resnet18", "vit_tiny_patch16_224"}) {
    spec::Job job = large_batch_job(model);
    job.training.optimizer.name = spec::OptimizerName::lars;
    const Recording lars = trace_step(job, {.steps = 2});
    EXPECT_GE(lasting_bytes(lars, MemoryClass::optimizer), lars.parameter_bytes);
    EXPECT_LT(lasting_bytes(lars, MemoryClass::optimizer), 1.1 * static_cast<double>(lars.parameter_bytes));
    EXPECT_GT(calls_of(lars, "_foreach_mul_"), 0);
    job.training.optimizer.name = spec::OptimizerName::lamb;
    const Recording lamb = trace_step(job, {.steps = 2});
    EXPECT_GE(lasting_bytes(lamb, MemoryClass::optimizer), 2 * lamb.parameter_bytes);
    EXPECT_GT(calls_of(lamb, "_foreach_sqrt_"), 0);
  }
}

TEST(LargeBatchTraceTest, SyncBatchNormGathersForwardAndReducesBackward) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16, spec::Precision::amp}) {
    spec::Job job = large_batch_job("resnet18");  // 20 batch norms
    job.training.precision = precision;
    job.training.batch_norm = spec::BatchNorm::sync;
    const Recording recording = trace_step(job, {.ranks = 2, .steps = 1});
    EXPECT_EQ(calls_of(recording, "batch_norm_stats"), 20);
    EXPECT_EQ(calls_of(recording, "batch_norm_elemt"), 20);
    EXPECT_EQ(calls_of(recording, "batch_norm_backward_reduce"), 20);
    EXPECT_EQ(calls_of(recording, "batch_norm_backward_elemt"), 20);
    const auto gathers = std::count_if(recording.events.begin(), recording.events.end(), [](const auto& event) {
      return event.kind == EventKind::collective && event.collective == forecast::CollectiveKind::all_gather;
    });
    EXPECT_EQ(gathers, 20 + 1);  // and how many passes each rank has
  }
}

TEST(LargeBatchTraceTest, GhostBatchNormRunsOnceASlice) {
  spec::Job job = large_batch_job("resnet18");
  job.training.batch_norm = spec::BatchNorm::ghost;
  job.training.ghost_batch = 2;
  EXPECT_EQ(calls_of(trace_step(job, {.steps = 1}), "cudnn_batch_norm_backward"), 4 * 20);
}

TEST(LargeBatchTraceTest, Bfloat16HalvesWhatGradientsSend) {
  const auto reduced_bytes = [](spec::ReducePrecision precision) {
    spec::Job job = large_batch_job("resnet18");
    job.training.reduce_precision = precision;
    const Recording recording = trace_step(job, {.ranks = 2, .steps = 1});
    int64_t bytes = 0;
    for (const auto& event : recording.events) {
      if (event.kind == EventKind::collective && event.bytes > 100'000) bytes += event.bytes;  // the buckets
    }
    return bytes;
  };
  EXPECT_EQ(reduced_bytes(spec::ReducePrecision::fp32), 2 * reduced_bytes(spec::ReducePrecision::bf16));
}

}  // namespace
}  // namespace lockstep::trace
