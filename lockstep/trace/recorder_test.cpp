// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/recorder.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::trace {
namespace {

using forecast::EventKind;
using forecast::MemoryClass;
using forecast::Phase;

forecast::Operator call(const std::string& name, double bytes = 8) {
  forecast::Operator result;
  result.name = name;
  result.bytes = bytes;
  return result;
}

TEST(RecorderTest, KeepsEachDistinctCallOnce) {
  Recorder recorder;
  recorder.run(call("aten::add"));
  recorder.run(call("aten::mul"));
  recorder.run(call("aten::add"));
  recorder.run(call("aten::add", 16));
  const auto recording = recorder.finish();
  EXPECT_EQ(recording.operators.size(), 3);
  ASSERT_EQ(recording.events.size(), 4);
  EXPECT_EQ(recording.events[0].id, recording.events[2].id);
}

TEST(RecorderTest, NothingIsBornOfNoBytes) {
  Recorder recorder;
  EXPECT_EQ(recorder.birth(0), -1);
  recorder.death(-1);
  EXPECT_TRUE(recorder.finish().events.empty());
}

TEST(RecorderTest, AStorageGetsItsClassAfterItsBirth) {
  Recorder recorder;
  const int64_t first = recorder.birth(512);
  const int64_t second = recorder.birth(256);
  recorder.classify(first, MemoryClass::gradients);
  recorder.classify_from(second, MemoryClass::inputs);
  const auto recording = recorder.finish();
  EXPECT_EQ(recording.events[0].memory, MemoryClass::gradients);
  EXPECT_EQ(recording.events[1].memory, MemoryClass::inputs);
}

TEST(RecorderTest, TheUpdateBeginsWithTheFirstListOfGradients) {
  Recorder recorder;
  recorder.run(call("aten::zero_"));
  recorder.step_begin();
  recorder.run(call("aten::add"));
  recorder.run(call("aten::_foreach_norm"));
  recorder.run(call("aten::add"));
  recorder.step_end();
  recorder.step_begin();
  recorder.run(call("aten::add"));
  std::vector<Phase> phases;
  const auto recording = recorder.finish();
  for (const auto& event : recording.events) {
    if (event.kind == EventKind::run) phases.push_back(recording.operators[static_cast<size_t>(event.id)].phase);
  }
  EXPECT_EQ(phases, (std::vector{Phase::setup, Phase::forward, Phase::update, Phase::update, Phase::forward}));
}

TEST(RecorderTest, AnotherThreadIsAutogradsAndItsCollectivesAreWaitedForByTheMainOne) {
  Recorder recorder;
  recorder.step_begin();
  std::thread([&] {
    recorder.run(call("aten::mm"));
    recorder.collective(forecast::CollectiveKind::all_reduce, 64);
    recorder.run(call("aten::mm"));
  }).join();
  recorder.run(call("aten::add"));
  const auto recording = recorder.finish();
  ASSERT_EQ(recording.events.size(), 6);
  EXPECT_EQ(recording.events[1].thread, 1);
  EXPECT_EQ(recording.events[2].kind, EventKind::collective);
  EXPECT_EQ(recording.events[4].kind, EventKind::wait);
  EXPECT_EQ(recording.events[4].id, recording.events[2].id);
  EXPECT_EQ(recording.events[5].thread, 0);
  EXPECT_EQ(recording.operators[0].phase, Phase::backward);
}

}  // namespace
}  // namespace lockstep::trace
