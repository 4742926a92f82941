// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace lockstep::forecast {
namespace {

constexpr int64_t kMeg = int64_t{1} << 20;

// Builds recordings by hand.
class Script {
 public:
  Script() { recording_.blocks = {"stem", "head"}; }
  int64_t op(OperatorClass kind, Phase phase, int64_t block, std::vector<int64_t> shape = {}) {
    Operator made;
    made.name = "aten::" + name_of(kind);
    made.kind = kind;
    made.type = NumberType::bf16;
    made.phase = phase;
    made.block = block;
    made.shape = std::move(shape);
    recording_.operators.push_back(made);
    return static_cast<int64_t>(recording_.operators.size()) - 1;
  }
  void add(EventKind kind, int64_t id, int64_t bytes = 0, MemoryClass memory = MemoryClass::other, int8_t thread = 0) {
    Event event;
    event.kind = kind;
    event.id = id;
    event.bytes = bytes;
    event.memory = memory;
    event.thread = thread;
    recording_.events.push_back(event);
    recording_.steps += kind == EventKind::step_end;
  }
  Recording& recording() { return recording_; }

 private:
  Recording recording_;
};

// Weights of 40 MiB; each step: 100 MiB of activations, a gradient of 40 MiB, from step 1 on an optimizer's 40 MiB.
Recording three_steps() {
  Script script;
  const int64_t forward = script.op(OperatorClass::matmul, Phase::forward, 0);
  const int64_t backward = script.op(OperatorClass::matmul, Phase::backward, 1);
  const int64_t update = script.op(OperatorClass::optimizer, Phase::update, -1);
  script.add(EventKind::birth, 0, 40 * kMeg, MemoryClass::weights);
  for (int64_t step = 0; step < 3; ++step) {
    script.add(EventKind::step_begin, step);
    script.add(EventKind::birth, 10, 100 * kMeg, MemoryClass::activations);
    script.add(EventKind::run, forward);
    script.add(EventKind::birth, 11, 40 * kMeg, MemoryClass::gradients, 1);
    script.add(EventKind::run, backward, 0, MemoryClass::other, 1);
    script.add(EventKind::death, 10);
    if (step == 0) script.add(EventKind::birth, 1, 40 * kMeg, MemoryClass::optimizer);
    script.add(EventKind::run, update);
    script.add(EventKind::death, 11);
    script.add(EventKind::step_end, step);
  }
  return script.recording();
}

TEST(MemoryTest, PromisesTheWarmPeakAndStatesTheColdOne) {
  const MemoryForecast forecast = forecast_memory(three_steps(), {});
  EXPECT_EQ(forecast.peak_allocated, 220 * kMeg);  // step 2 on: with the optimizer's state
  EXPECT_EQ(forecast.by_class.at(MemoryClass::weights), 40 * kMeg);
  EXPECT_EQ(forecast.by_class.at(MemoryClass::activations), 100 * kMeg);
  EXPECT_EQ(forecast.by_class.at(MemoryClass::gradients), 40 * kMeg);
  EXPECT_EQ(forecast.by_class.at(MemoryClass::optimizer), 40 * kMeg);
  // The optimizer's state went into the activations' segment, so step 2 needs another one.
  EXPECT_EQ(forecast.cold_peak_reserved, 180 * kMeg);
  EXPECT_EQ(forecast.peak_reserved, 280 * kMeg);
  EXPECT_EQ(forecast.fragmentation, 60 * kMeg);
  EXPECT_EQ(forecast.moment, "step 2, backward, aten::matmul of head");
  EXPECT_TRUE(forecast.fits);
}

TEST(MemoryTest, KeepsOneMultiplicationWorkspaceForEachThread) {
  const MemoryForecast without = forecast_memory(three_steps(), {});
  const MemoryForecast with = forecast_memory(three_steps(), {.cublas_workspace = 32 * kMeg});
  EXPECT_EQ(with.by_class.at(MemoryClass::workspaces), 65 * kMeg);  // and one for the process
  EXPECT_EQ(with.peak_allocated, without.peak_allocated + 65 * kMeg);
}

TEST(MemoryTest, AddsTheWorkspaceOfAConvolutionForTheTimeOfItsCall) {
  Script script;
  const int64_t stem = script.op(OperatorClass::convolution, Phase::forward, 0, {8, 3, 224, 224, 64, 7, 7, 2, 1});
  script.add(EventKind::step_begin, 0);
  script.add(EventKind::birth, 0, 10 * kMeg, MemoryClass::activations);
  script.add(EventKind::run, stem);
  script.add(EventKind::step_end, 0);
  const MemoryForecast forecast = forecast_memory(script.recording(), {});
  const int64_t padded = 8 * 224 * 224 * 8 * 2 + 64 * 49 * 8 * 2;
  EXPECT_NEAR(static_cast<double>(forecast.by_class.at(MemoryClass::workspaces)), static_cast<double>(padded), kMeg);
  EXPECT_EQ(forecast.curve.back().by_class[static_cast<size_t>(MemoryClass::workspaces)], 0);
}

TEST(MemoryTest, NamesTheLargestBlocksAndWhoBoreThem) {
  const MemoryForecast forecast = forecast_memory(three_steps(), {});
  ASSERT_EQ(forecast.largest.size(), 4u);
  EXPECT_EQ(forecast.largest[0].bytes, 100 * kMeg);
  EXPECT_EQ(forecast.largest[0].memory, MemoryClass::activations);
  EXPECT_EQ(forecast.largest[0].born_by, "aten::matmul forward stem");
}

TEST(MemoryTest, DrawsACurveOfTheLastStepThatHoldsThePeak) {
  Recording recording = three_steps();
  const MemoryForecast forecast = forecast_memory(recording, {});
  int64_t highest = 0;
  for (const auto& point : forecast.curve) {
    highest = std::max(highest, std::accumulate(point.by_class.begin(), point.by_class.end(), int64_t{0}));
  }
  EXPECT_EQ(highest, forecast.peak_allocated);
  EXPECT_LE(forecast.curve.size(), 400u);
}

TEST(MemoryTest, FitsByGivingCachedSegmentsBackOrSaysHowMuchIsMissing) {
  const MemoryRules roomy{.capacity = 300 * kMeg, .context = 10 * kMeg};
  EXPECT_TRUE(forecast_memory(three_steps(), roomy).fits);
  EXPECT_EQ(forecast_memory(three_steps(), roomy).retries, 0);
  const MemoryRules full{.capacity = 200 * kMeg, .context = 10 * kMeg};
  const MemoryForecast forecast = forecast_memory(three_steps(), full);
  EXPECT_FALSE(forecast.fits);
  EXPECT_EQ(forecast.total, 290 * kMeg);
  const MemoryRules expandable{.capacity = 260 * kMeg, .expandable_segments = true, .context = 10 * kMeg};
  EXPECT_TRUE(forecast_memory(three_steps(), expandable).fits);
}

void birth(Recording& recording, int64_t id, int64_t mega, MemoryClass memory) {
  recording.events.push_back({.kind = EventKind::birth, .id = id, .bytes = mega * kMeg, .memory = memory});
}

// Two steps with inputs and activations of so many MiB.
Recording two_steps(int64_t inputs, int64_t activations) {
  Recording recording;
  recording.steps = 2;
  const auto death = [&](int64_t id) { recording.events.push_back({.kind = EventKind::death, .id = id}); };
  birth(recording, 0, 100, MemoryClass::weights);
  for (int64_t step = 0; step < 2; ++step) {
    recording.events.push_back({.kind = EventKind::step_begin});
    birth(recording, 1, inputs, MemoryClass::inputs);
    birth(recording, 2, activations, MemoryClass::activations);
    death(2);
    birth(recording, 3, activations - 20, MemoryClass::activations);  // where the others were
    death(3);
    death(1);
    recording.events.push_back({.kind = EventKind::step_end});
  }
  return recording;
}

// What is cached goes back, the inputs are copied, the step has a pool of its own that stays, and an evaluation behind
// it needs its memory beside that.
TEST(MemoryTest, ACapturedStepHasAPoolOfItsOwnAndACopyOfItsInputs) {
  Recording recording = two_steps(30, 60);
  EXPECT_EQ(forecast_memory(recording, {}).peak_reserved, (100 + 30 + 60) * kMeg);
  recording.captured = true;
  EXPECT_EQ(forecast_memory(recording, {}).peak_reserved, (100 + 30 + 30 + 60) * kMeg);
  birth(recording, 4, 50, MemoryClass::activations);  // more than is cached
  EXPECT_EQ(forecast_memory(recording, {}).peak_reserved, (100 + 30 + 30 + 60 + 50) * kMeg);
}

TEST(MemoryTest, ASmallerBatchNeedsItsMemoryBesideTheGraphs) {
  Recording recording = two_steps(30, 60);
  const Recording odd = two_steps(20, 50);
  EXPECT_EQ(forecast_memory(recording, {}, &odd).peak_reserved, (100 + 30 + 60) * kMeg) << "eager steps share theirs";
  recording.captured = true;
  const MemoryForecast forecast = forecast_memory(recording, {}, &odd);
  EXPECT_EQ(forecast.peak_reserved, (100 + 30 + 30 + 60 + 50) * kMeg) << "its inputs find room where the others were";
  EXPECT_EQ(forecast.beside_graph, 50 * kMeg);
  birth(recording, 4, 50, MemoryClass::activations);  // an evaluation takes what the smaller batch left
  EXPECT_EQ(forecast_memory(recording, {}, &odd).peak_reserved, (100 + 30 + 30 + 60 + 50) * kMeg);
}

// Two layers; the second gradient takes the place of the activations.
Recording two_layers() {
  Recording recording;
  recording.steps = 2;
  birth(recording, 0, 80, MemoryClass::weights);
  birth(recording, 1, 80, MemoryClass::optimizer);
  for (int64_t step = 0; step < 2; ++step) {
    recording.events.push_back({.kind = EventKind::step_begin});
    birth(recording, 2, 90, MemoryClass::activations);
    birth(recording, 3, 20, MemoryClass::gradients);
    recording.events.push_back({.kind = EventKind::death, .id = 2});
    birth(recording, 4, 60, MemoryClass::gradients);
    recording.events.push_back({.kind = EventKind::step_end});
    if (step == 1) break;  // they last until the next step
    for (const int64_t id : {3, 4}) recording.events.push_back({.kind = EventKind::death, .id = id});
  }
  return recording;
}

// "Weights, gradients and optimizer alone take" was said of the peak, at which many gradients are not there yet.
TEST(MemoryTest, WhatIsFixedIsOfTheMomentWithTheMostOfIt) {
  Recording recording = two_layers();
  const MemoryForecast forecast = forecast_memory(recording, {});
  EXPECT_EQ(forecast.peak_allocated, (80 + 80 + 90 + 20) * kMeg);
  EXPECT_EQ(forecast.by_class.at(MemoryClass::gradients), 20 * kMeg);
  EXPECT_EQ(forecast.fixed, (80 + 80 + 20 + 60) * kMeg);
  const Recording odd = two_layers();
  recording.captured = true;
  EXPECT_EQ(forecast_memory(recording, {}, &odd).fixed, forecast.fixed) << "its gradients lie beside the graph's";
}

TEST(MemoryTest, CountsCommunicatorsOnlyBetweenRanks) {
  Recording recording = three_steps();
  EXPECT_EQ(forecast_memory(recording, {.nccl = 7}).total, 280 * kMeg);
  recording.ranks = 2;
  EXPECT_EQ(forecast_memory(recording, {.nccl = 7}).total, 280 * kMeg + 7);
}

}  // namespace
}  // namespace lockstep::forecast
