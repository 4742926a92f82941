// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/watch/watch.h"

#include <gtest/gtest.h>

#include "lockstep/run/journal.h"

namespace lockstep::verbs::watch {
namespace {

base::Json fields(const std::string& json) {
  return base::parse_json(json, "test");
}

TEST(WatchTest, EndsWithTheRunAndTellsHow) {
  const base::TemporaryFolder temporary;
  const run::RunPaths paths{temporary.path()};
  run::Journal journal(paths.journal());
  std::vector<watching::RunWatch> runs;
  runs.emplace_back(paths);
  int shown = 0, paused = 0;
  const int code = follow_runs(
      runs, [&](const auto& all) { shown += static_cast<int>(all.size()); },
      [&] {
        if (++paused == 2) journal.append("start", fields("{}")), journal.append("stop", fields(R"({"reason":"x"})"));
        return true;
      });
  EXPECT_EQ(code, 85);
  EXPECT_EQ(paused, 2);
  EXPECT_EQ(shown, 3);
}

TEST(WatchTest, TheWorstOfSeveralRunsDecides) {
  const base::TemporaryFolder temporary;
  std::vector<watching::RunWatch> runs;
  for (const char* end : {"end", "stop", "restart", "end"}) {
    const run::RunPaths paths{temporary.path() / std::to_string(runs.size())};
    base::make_folders(paths.root);
    run::Journal journal(paths.journal());
    journal.append("start", fields("{}"));
    journal.append(end, fields("{}"));
    runs.emplace_back(paths);
  }
  EXPECT_EQ(follow_runs(
                runs, [](const auto&) {}, [] { return true; }),
            3);
}

TEST(WatchTest, SomebodyMayEndItWithoutAnyHarm) {
  const base::TemporaryFolder temporary;
  std::vector<watching::RunWatch> runs;
  runs.emplace_back(run::RunPaths{temporary.path()});
  EXPECT_EQ(follow_runs(
                runs, [](const auto&) {}, [] { return false; }),
            130);
}

}  // namespace
}  // namespace lockstep::verbs::watch
