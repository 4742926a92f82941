// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recordings.h"

#include <gtest/gtest.h>

#include "lockstep/forecast/invented_step.h"

namespace lockstep::forecast {
namespace {

TEST(RecordingsTest, TracesAStepOnceAndComputesTheThirdBatch) {
  Recordings recordings(invented_step);
  const TraceKey small{.precision = "fp32", .micro_batch = 4};
  const TraceKey large{.precision = "fp32", .micro_batch = 16};
  const TraceKey between{.precision = "fp32", .micro_batch = 9};
  EXPECT_EQ(recordings.of(small), invented_step(small));
  EXPECT_EQ(recordings.of(small), invented_step(small));
  EXPECT_EQ(recordings.num_traced(), 1);
  EXPECT_EQ(recordings.of(large), invented_step(large));
  EXPECT_EQ(recordings.of(between), invented_step(between));
  EXPECT_EQ(recordings.num_traced(), 2);
}

TEST(RecordingsTest, TracesOncePerPrecisionRecomputationAndNumberOfPasses) {
  Recordings recordings(invented_step);
  recordings.of({.precision = "fp32", .micro_batch = 4});
  recordings.of({.precision = "bf16", .micro_batch = 4});
  recordings.of({.precision = "fp32", .recompute = {"late"}, .micro_batch = 4});
  recordings.of({.precision = "fp32", .micro_batch = 4, .passes = 2});
  recordings.of({.precision = "fp32", .reduced = true, .micro_batch = 4});
  EXPECT_EQ(recordings.num_traced(), 5);
}

TEST(RecordingsTest, AsksForAttentionOnlyWhereTheNetworkHasIt) {
  Recordings without(invented_step);
  without.of({.precision = "fp32", .attention = Attention::flash, .micro_batch = 4});
  without.of({.precision = "fp32", .attention = Attention::efficient, .micro_batch = 4});
  EXPECT_EQ(without.num_traced(), 1);
  Recordings with([](const TraceKey& trace_key) {
    Recording recording = invented_step(trace_key);
    recording.attention = name_of(*trace_key.attention);
    return recording;
  });
  with.of({.precision = "fp32", .attention = Attention::flash, .micro_batch = 4});
  EXPECT_EQ(with.of({.precision = "fp32", .attention = Attention::efficient, .micro_batch = 4}).attention, "efficient");
  EXPECT_EQ(with.num_traced(), 2);
}

TEST(RecordingsTest, DoesNotTakeWrittenOutAttentionForNone) {
  Recordings recordings([](const TraceKey& trace_key) {
    Recording recording = invented_step(trace_key);
    if (trace_key.attention != Attention::math) recording.attention = name_of(*trace_key.attention);
    return recording;
  });
  recordings.of({.precision = "fp32", .attention = Attention::math, .micro_batch = 4});
  EXPECT_EQ(recordings.of({.precision = "fp32", .attention = Attention::flash, .micro_batch = 4}).attention, "flash");
  EXPECT_EQ(recordings.num_traced(), 2);
}

TEST(RecordingsTest, ReplaysMemoryOnceForAllGpusThatHoldIt) {
  Recordings recordings(invented_step);
  const TraceKey trace_key{.precision = "fp32", .micro_batch = 4};
  MemoryRules rules;
  for (const int64_t capacity : {8'000'000'000, 16'000'000'000, 80'000'000'000}) {
    rules.capacity = capacity;
    EXPECT_GE(recordings.memory(trace_key, rules).peak_allocated, 100'000'000 + 4 * 60'000'000);
  }
  EXPECT_EQ(recordings.num_replayed(), 1);
  rules.capacity = 200'000'000;  // less than what is alive: nothing to replay
  EXPECT_GT(recordings.memory(trace_key, rules).total, rules.capacity);
  EXPECT_EQ(recordings.num_replayed(), 1);
  rules.capacity = recordings.memory(trace_key, {}).peak_allocated;  // all but what is cached
  EXPECT_GE(recordings.memory(trace_key, rules).total, rules.capacity);
  EXPECT_EQ(recordings.num_replayed(), 2);
}

// An RTX 3060 was once given the buffers of the RTX 3090 that was planned before it: both have compute capability 8.6.
TEST(RecordingsTest, ReplaysAgainForAGpuThatRunsOtherWarpsWhereASumHasABufferForEach) {
  bool sums = true;
  Recordings recordings([&](const TraceKey& trace_key) {
    Recording recording = invented_step(trace_key);
    for (Operator& call : recording.operators) call.kind = OperatorClass::elementwise;  // without scratch
    if (sums) {
      recording.operators[1] = {.name = "aten::sum",
                                .kind = OperatorClass::reduction,
                                .bytes = 65537. * 1024 * 4,
                                .block = 1,
                                .shape = {65536, 1024}};
    }
    return recording;
  });
  const TraceKey trace_key{.precision = "fp32", .micro_batch = 4};
  const int64_t few = recordings.memory(trace_key, {.warps = 1344}).peak_allocated;
  EXPECT_GT(recordings.memory(trace_key, {.warps = 3936}).peak_allocated, few);
  EXPECT_EQ(recordings.memory(trace_key, {.warps = 1344}).peak_allocated, few);
  EXPECT_EQ(recordings.num_replayed(), 2);
  sums = false;
  const TraceKey without{.precision = "bf16", .micro_batch = 4};
  recordings.memory(without, {.warps = 1344});
  recordings.memory(without, {.warps = 3936});
  EXPECT_EQ(recordings.num_replayed(), 3);
}

}  // namespace
}  // namespace lockstep::forecast
