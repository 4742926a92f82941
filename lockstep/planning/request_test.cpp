// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/request.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::planning {
namespace {

TEST(WordsOfTest, SplitsAtCommasAndJoinsRepeatedOptions) {
  const base::CommandLine line{"plan", "[JOB]", "", {{"--on", "MACHINES", ""}}, ""};
  const auto arguments = base::parse_arguments(line, {"--on", "t4, v100-16,", "--on", "here"});
  EXPECT_EQ(words_of(arguments, "--on"), (std::vector<std::string>{"t4", "v100-16", "here"}));
  EXPECT_TRUE(words_of(arguments, "--gpus").empty());
}

TEST(PositiveNumbersTest, TakesAListAndRefusesWhatIsNotAboveZero) {
  const base::CommandLine line{"plan", "[JOB]", "", {{"--life", "YEARS", ""}}, ""};
  const auto given = [&](const std::string& words) { return base::parse_arguments(line, {"--life", words}); };
  EXPECT_EQ(positive_numbers(given("3,4.5"), "--life", {}), (std::vector<double>{3, 4.5}));
  EXPECT_EQ(positive_numbers(base::parse_arguments(line, {}), "--life", {7}), std::vector<double>{7});
  for (const char* wrong : {"0", "-1", "three", "nan", ","}) {
    EXPECT_THROW(positive_numbers(given(wrong), "--life", {}), base::Error) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::planning
