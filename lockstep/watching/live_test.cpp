// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/live.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"

namespace lockstep::watching {
namespace {

Cursor cursor_in(const base::Json& told) {
  const base::Json& cursor = told.at("cursor");
  return {cursor.at("voids").as_int(), cursor.at("steps").as_int(), cursor.at("evaluations").as_int()};
}

TEST(LiveTest, TellsOnlyWhatIsNewAndStartsOverAfterAResume) {
  const base::TemporaryFolder temporary;
  run::Journal journal(run::RunPaths{temporary.path()}.journal());
  const auto append = [&](const char* event, const std::string& json) {
    journal.append(event, base::parse_json(json, "test"));
  };
  RunWatch watch({temporary.path()});
  append("start", R"({"total_steps":9,"class_names":["a","b"]})");
  append("step", R"({"step":1,"loss":2})");
  append("evaluate", R"({"step":1,"split":"validate","loss":3})");
  watch.poll();
  const auto first = live_json(watch, {}, 0);
  EXPECT_TRUE(first.at("reset").as_bool());
  EXPECT_EQ(first.at("steps").size(), 1U);
  EXPECT_EQ(first.at("evaluations").size(), 1U);
  EXPECT_FALSE(first.at("start").contains("class_names"));
  append("step", R"({"step":2,"loss":1})");
  watch.poll();
  const auto second = live_json(watch, cursor_in(first), 0);
  EXPECT_FALSE(second.at("reset").as_bool());
  ASSERT_EQ(second.at("steps").size(), 1U);
  EXPECT_EQ(second.at("steps").items()[0].at("step").as_int(), 2);
  EXPECT_EQ(second.at("evaluations").size(), 0U);
  append("resume", R"({"step":1})");
  watch.poll();
  const auto third = live_json(watch, cursor_in(second), 0);
  EXPECT_TRUE(third.at("reset").as_bool());
  EXPECT_EQ(third.at("steps").size(), 1U);
  EXPECT_TRUE(
      live_json(watch, {.voids = cursor_in(third).voids, .steps = 99, .evaluations = 0}, 0).at("reset").as_bool());
}

TEST(LiveTest, ALongRunStaysCheap) {
  const base::TemporaryFolder temporary;
  std::string lines = "{\"v\":1,\"t\":1,\"event\":\"start\"}\n";
  for (int step = 1; step <= 5000; ++step) {
    lines += base::text(R"({"v":1,"t":1,"event":"step","loss":1,"step":)", step, "}\n");
  }
  base::write_file(run::RunPaths{temporary.path()}.journal(), lines);
  RunWatch watch({temporary.path()});
  watch.poll();
  const auto all = live_json(watch, {}, 0);
  EXPECT_EQ(all.at("steps").size(), 600U);
  EXPECT_LT(live_json(watch, cursor_in(all), 0).dump(-1).size(), 4000U);
}

}  // namespace
}  // namespace lockstep::watching
