// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/timeline.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/json.h"

namespace lockstep::training {
namespace {

// How often each name stands in the trace, by process.
std::map<std::pair<int64_t, std::string>, int> pieces_in(const base::Path& file) {
  std::map<std::pair<int64_t, std::string>, int> names;
  const base::Json trace = base::read_json(file);
  for (const auto& event : trace.at("traceEvents").items()) {
    if (event.string_or("ph", "") != "X") continue;
    EXPECT_GE(event.double_or("dur", -1), 0);
    ++names[{event.int_or("pid", 0), event.string_or("name", "")}];
  }
  return names;
}

TEST(TimelineTest, HasTheLastStepsOfAShortSessionWithTheirOperators) {
  const base::TemporaryFolder folder;
  Timeline timeline(folder.path() / "profile.json", at::kCPU, Timeline::kSteps + 2);
  for (int64_t step = 0; step < Timeline::kSteps + 2; ++step) {
    timeline.before_step();
    const Timeline::Range range(&timeline, "step");
    at::ones({3}).add(at::ones({3}));
  }
  EXPECT_TRUE(timeline.is_complete());
  EXPECT_TRUE(timeline.write());
  EXPECT_FALSE(timeline.write());
  const auto names = pieces_in(timeline.file());
  EXPECT_EQ(names.at({1, "step"}), Timeline::kSteps);
  EXPECT_EQ(names.at({2, "aten::add"}), Timeline::kSteps);
}

TEST(TimelineTest, NobodyAskedIsNoRange) {
  const Timeline::Range range(nullptr, "step");
}

}  // namespace
}  // namespace lockstep::training
