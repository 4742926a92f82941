// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recorded.h"

#include <gtest/gtest.h>

namespace lockstep::planning {
namespace {

using forecast::EventKind;
using forecast::Phase;

forecast::Recording two_steps() {
  forecast::Recording recording;
  recording.parameter_bytes = 4000;
  recording.operators = {{.name = "aten::mm", .phase = Phase::backward},
                         {.name = "aten::add_", .phase = Phase::update}};
  for (int step = 0; step < 2; ++step) {
    recording.events.push_back({.kind = EventKind::step_begin});
    recording.events.push_back({.kind = EventKind::run, .id = 0});
    recording.events.push_back({.kind = EventKind::run, .id = 1});
    recording.events.push_back({.kind = EventKind::step_end});
  }
  return recording;
}

TEST(RecordedTest, GivesOneRankTheRecordingAsItIs) {
  EXPECT_EQ(recorded_step(two_steps(), {}), two_steps());
}

TEST(RecordedTest, ReducesTheGradientsBeforeEachUpdateOnSeveralRanks) {
  const auto made = recorded_step(two_steps(), {.reduced = true});
  ASSERT_EQ(made.events.size(), two_steps().events.size() + 4);
  EXPECT_EQ(made.events[2].kind, EventKind::collective);
  EXPECT_EQ(made.events[2].bytes, 4000);
  EXPECT_EQ(made.events[3].kind, EventKind::wait);
  EXPECT_EQ(made.events[4].id, 1);
  EXPECT_EQ(recorded_step(made, {.reduced = true}), made);  // it has its collectives
}

}  // namespace
}  // namespace lockstep::planning
