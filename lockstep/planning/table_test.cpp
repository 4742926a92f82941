// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
