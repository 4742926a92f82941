// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/baselines.h"

#include <gtest/gtest.h>

namespace lockstep::forecast {
namespace {

Recording two_passes() {
  Recording recording;
  recording.micro_batch = 2;
  recording.parameters = 100;
  recording.parameter_bytes = 400;
  recording.operators = {{.name = "f", .phase = Phase::forward}, {.name = "b", .phase = Phase::backward}};
  const auto add = [&](EventKind kind, int64_t id, int64_t bytes = 0, MemoryClass memory = MemoryClass::other) {
    Event event;
    event.kind = kind;
    event.id = id;
    event.bytes = bytes;
    event.memory = memory;
    recording.events.push_back(event);
  };
  add(EventKind::birth, 0, 400, MemoryClass::weights);
  for (int64_t step = 0; step < 2; ++step) {
    add(EventKind::step_begin, step);
    add(EventKind::birth, 1, 800, MemoryClass::activations);
    add(EventKind::run, 0);
    add(EventKind::birth, 2, 4000, MemoryClass::activations);
    add(EventKind::run, 1);
    add(EventKind::death, 1);
    add(EventKind::death, 2);
    add(EventKind::step_end, step);
  }
  return recording;
}

TEST(BaselinesTest, SayWhatOthersWouldHaveSaid) {
  const Recording recording = two_passes();
  EXPECT_EQ(weights_only(recording), 400);
  EXPECT_EQ(live_bytes_peak(recording), 512 + 1024 + 4096);
  EXPECT_DOUBLE_EQ(nodes_per_sample(recording), 100);  // 800 bytes of fp32, two samples; what backward bears is none
  EXPECT_DOUBLE_EQ(deepsim_heuristic(recording), (100 + 100) * 4 * 2 * 9);
}

TEST(BaselinesTest, RepeatThePagesOwnFigures) {
  Recording resnet152;
  resnet152.micro_batch = 32;
  resnet152.parameters = 60'192'808;
  EXPECT_NEAR(deepsim_by_parameters(resnet152), 17.25e9, 0.5e9);
}

}  // namespace
}  // namespace lockstep::forecast
