// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/arguments.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"

namespace lockstep::base {
namespace {

const CommandLine& line() {
  static const CommandLine kLine{"train",
                                 "JOB",
                                 "job -> run folder",
                                 {{"--ranks", "N", "ranks"}, {"--set", "K=V", "override"}, {"--here", "", "here"}},
                                 ""};
  return kLine;
}

std::string complaint(const std::vector<std::string>& words) {
  try {
    parse_arguments(line(), words);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.fix();
  }
  return "";
}

TEST(ArgumentsTest, TakesOptionsInAnyOrder) {
  const auto parsed = parse_arguments(line(), {"--ranks=2", "job.json", "--set", "a.b=c", "--set", "d=e", "--here"});
  EXPECT_EQ(parsed.only("job"), "job.json");
  EXPECT_EQ(parsed.int_or("--ranks", 1), 2);
  EXPECT_EQ(parsed.values("--set"), (std::vector<std::string>{"a.b=c", "d=e"}));
  EXPECT_TRUE(parsed.has("--here"));
  EXPECT_FALSE(parsed.has("--help"));
}

TEST(ArgumentsTest, AFileIsMeantWhereTheProgramWasStarted) {
  auto parsed = parse_arguments(line(), {"--set", "a/b", "--set=-", "--set", "/c", "--ranks", "2"});
  for (const char* option : {"--set", "--here"}) parsed.make_absolute(option);
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(parsed.values("--set"), (std::vector<std::string>{here + "/a/b", "-", "/c"}));
  EXPECT_EQ(parsed.value("--ranks"), "2");
}

TEST(ArgumentsTest, NamesTheNearestOption) {
  EXPECT_EQ(complaint({"--rank", "2"}), "lockstep train has no option '--rank' | did you mean '--ranks'?");
  EXPECT_EQ(complaint({"--epochs", "3"}),
            "lockstep train has no option '--epochs' | a key of the job? --set KEY=VALUE, `lockstep explain` has them; "
            "known: --help, --ranks, --set, --here");
  EXPECT_EQ(complaint({"--ranks"}), "--ranks needs a value | --ranks N");
  EXPECT_EQ(complaint({"--here=1"}), "--here takes no value | ");
}

TEST(ArgumentsTest, ChecksIntegersAndPositionals) {
  EXPECT_THROW((void)parse_arguments(line(), {"--ranks", "two"}).int_or("--ranks", 1), Error);
  EXPECT_THROW((void)parse_arguments(line(), {}).only("job"), Error);
  EXPECT_EQ(parse_arguments(line(), {"--", "--odd-name"}).only("job"), "--odd-name");
}

TEST(ArgumentsTest, HelpListsEveryOption) {
  const std::string help = help_text(line());
  for (const char* part : {"usage: lockstep train JOB", "--ranks N", "--here", "--help"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part;
  }
}

TEST(ArgumentsTest, GivesTheResultToAFileBesideTheTextOrAlone) {
  const CommandLine with_json{"doctor", "", "looks", {{"--json", "FILE", "result"}}, ""};
  Json result = Json::object();
  result["cores"] = 2;
  testing::internal::CaptureStdout();
  give(parse_arguments(with_json, {"--json", "-"}), result, "two cores\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), result.dump() + "\n");
  const Path file = Path(testing::TempDir()) / "given.json";
  testing::internal::CaptureStdout();
  give(parse_arguments(with_json, {"--json", file.string()}), result, "two cores\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "two cores\n");
  EXPECT_EQ(read_json(file), result);
  EXPECT_FALSE(give_json(parse_arguments(with_json, {}), result));
}

}  // namespace
}  // namespace lockstep::base
