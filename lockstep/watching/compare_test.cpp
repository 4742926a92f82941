// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"

namespace lockstep::watching {
namespace {

using base::Json;
using testing::HasSubstr;

Json parsed(const std::string& json) {
  return base::parse_json(json, "test");
}

// A run of two epochs, of which the first was the better one.
run::RunPaths write_run(const base::Path& root, const std::string& job, int ranks, double last_top1) {
  const run::RunPaths paths{root};
  base::make_folders(root);
  base::write_file(paths.job(), job);
  run::Journal journal(paths.journal());
  journal.append("start", parsed(base::text(R"({"total_steps":8,"device":"cpu","ranks":)", ranks, "}")));
  journal.append("step", parsed(R"({"step":4,"samples":32,"seconds":2,"loss":1})"));
  journal.append("evaluate", parsed(R"({"step":4,"split":"validate","samples":9,"loss":0.5,"top1":0.75,"headline":
                                       {"name":"top1","value":0.75,"higher_is_better":true,"text":"top-1 75 %"}})"));
  journal.append("step", parsed(R"({"step":8,"samples":32,"seconds":2,"loss":1})"));
  journal.append("epoch", parsed(R"({"epoch":2,"step":8,"loss":0.25})"));
  journal.append("evaluate", parsed(base::text(R"({"step":8,"split":"validate","samples":9,"loss":0.125,"top1":)",
                                               last_top1, R"(,"headline":{"name":"top1","value":)", last_top1,
                                               R"(,"higher_is_better":true,"text":"top-1"}})")));
  return paths;
}

Json values_of(const std::vector<Row>& rows, const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return Json::array(row.values);
  }
  return {};
}

TEST(DiffTest, TellsSettingsThatDifferAndAllFigures) {
  const base::TemporaryFolder temporary;
  const auto one = write_run(temporary.path() / "one", R"({"name":"x","training":{"optimizer":{"lr":0.5}}})", 1, 0.5);
  const auto two =
      write_run(temporary.path() / "two", R"({"name":"x","training":{"optimizer":{"lr":0.1},"seed":7}})", 2, 0.875);
  const Differences differences = compare_runs({one, two});
  ASSERT_EQ(differences.settings.size(), 2U);
  EXPECT_EQ(values_of(differences.settings, "training.optimizer.lr"), parsed("[0.5, 0.1]"));
  EXPECT_EQ(values_of(differences.settings, "training.seed"), parsed("[1, 7]"));  // absent: the default
  ASSERT_EQ(differences.circumstances.size(), 1U);
  EXPECT_EQ(values_of(differences.circumstances, "ranks"), parsed("[1, 2]"));
  EXPECT_EQ(values_of(differences.figures, "steps"), parsed("[8, 8]"));
  EXPECT_EQ(values_of(differences.figures, "validate top1"), parsed("[0.5, 0.875]"));
  EXPECT_EQ(values_of(differences.figures, "best top1"), parsed("[0.75, 0.875]"));
  EXPECT_EQ(values_of(differences.figures, "best at step"), parsed("[4, 8]"));
  EXPECT_EQ(values_of(differences.figures, "samples per second"), parsed("[16.0, 16.0]"));
  EXPECT_EQ(to_json(differences).at("settings").items()[0].at("name").as_string(), "training.optimizer.lr");
  const auto equal = write_run(temporary.path() / "equal", R"({"name":"x"})", 1, 0.75);
  EXPECT_EQ(values_of(compare_runs({one, equal}).figures, "best at step"), parsed("[4, 8]"));  // as training keeps it
}

TEST(DiffTest, SaysThatNothingDiffersAndWhatARunDoesNotHave) {
  const base::TemporaryFolder temporary;
  const auto one = write_run(temporary.path() / "one", R"({"name":"x"})", 1, 0.5);
  const auto two = write_run(temporary.path() / "two", R"({"name":"x"})", 1, 0.5);
  run::Journal(two.journal()).append("end", parsed(R"({"step":8,"weights_sha256":"0123456789abcdef"})"));
  const std::string shown = to_text(compare_runs({one, two}));
  EXPECT_THAT(shown, HasSubstr("settings: the same\n\ncircumstances: the same\n"));
  EXPECT_THAT(shown, testing::ContainsRegex("weights_sha256 +- +0123456789ab\n"));
}

TEST(DiffTest, AFolderWithoutAJobIsNamed) {
  const base::TemporaryFolder temporary;
  const auto one = write_run(temporary.path() / "one", R"({"name":"x"})", 1, 0.5);
  std::filesystem::remove(one.job());
  try {
    compare_runs({one, one});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), HasSubstr("job.json"));
  }
}

}  // namespace
}  // namespace lockstep::watching
