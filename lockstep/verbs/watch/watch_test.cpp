// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/watch/watch.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
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

TEST(WatchTest, ANetworkThatFailsIsToldOnceAndTriedAgain) {
  std::vector<std::string> said;
  int fetched = 0;
  bool network = true;
  Fetching fetching(
      {"a", "b"},
      [&](const std::string& run) {
        ++fetched;
        if (!network && run == "b") throw base::Error(base::Blame::machine, "no route to host");
      },
      [&](const std::string& line) { said.push_back(line); });
  fetching.fetch_all();
  EXPECT_TRUE(said.empty());
  network = false;
  fetching.fetch_all();
  fetching.fetch_all();
  EXPECT_EQ(said, (std::vector<std::string>{"b: no route to host; tried again at each look"}));
  EXPECT_EQ(fetching.troubles().at("b"), "no route to host");
  network = true;
  fetching.fetch_all();
  EXPECT_EQ(said.back(), "b: fetched again");
  EXPECT_TRUE(fetching.troubles().empty());
  EXPECT_EQ(fetched, 8);
  Fetching broken({"a"}, [](const std::string&) { throw base::Error(base::Blame::user, "via.json"); }, {});
  EXPECT_THROW(broken.fetch_all(), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::watch
