// SPDX-License-Identifier: Apache-2.0
// What large batches bring is seen by the plan too.
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/trace/trace.h"

namespace lockstep::trace {
namespace {

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
    if (event.kind == forecast::EventKind::birth && event.memory == memory) bytes += event.bytes;
  }
  return bytes;
}

int64_t calls_of(const Recording& recording, const std::string& name) {
  return std::count_if(recording.events.begin(), recording.events.end(), [&](const auto& event) {
    return event.kind == forecast::EventKind::run &&
           recording.operators[static_cast<size_t>(event.id)].name.find(name) != std::string::npos;
  });
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

}  // namespace
}  // namespace lockstep::trace
