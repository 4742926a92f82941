// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/planning/invented_plan.h"

namespace lockstep::planning {
namespace {

using testing::ContainsRegex;
using testing::StartsWith;

TEST(PlanTableTest, SaysFirstWhichGpusNothingDrives) {
  const std::string shown = to_text(invented_plan({"k40", "a100-80"}), 100);
  EXPECT_THAT(shown, StartsWith("k40: no current CUDA drives it (last: 11.8)\nfastest: a100-80"));
  EXPECT_THAT(shown, ContainsRegex("a100-80 +yes +[0-9.]+ / 85.2 +[0-9.]+ ms +\\+-[0-9]+ % "));
}

// Where no speed is known a column has nothing: the others stay under their own heads.
TEST(PlanTableTest, EveryColumnStandsUnderItsHead) {
  for (const int64_t columns : {80, 100}) {
    const std::vector<std::string> lines = base::split(to_text(invented_plan({"8GB"}), columns), '\n');
    const auto head = std::find_if(lines.begin(), lines.end(),
                                   [](const auto& line) { return line.find("GB needed") != std::string::npos; });
    ASSERT_NE(head, lines.end());
    const std::string& row = head[2];
    for (const char* name : {"step", "run", "jobs", "cost"}) {
      const size_t end = head->find(name) + std::string(name).size();
      ASSERT_LE(end, row.size()) << name;
      EXPECT_EQ(row.substr(end - 2, 2), " -") << name << " of " << row;
    }
  }
}

TEST(PlanTableTest, StaysWithinTheTerminal) {
  for (const int64_t columns : {80, 100}) {
    for (const auto& on : {std::vector<std::string>{"all"}, {"minotauro", "k40", "h200"}}) {
      const std::string shown = to_text(invented_plan(on, {1, 4}), columns);
      for (const auto& line : base::split(shown, '\n')) {
        EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::planning
