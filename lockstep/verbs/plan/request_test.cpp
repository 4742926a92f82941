// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/plan/request.h"

#include <gtest/gtest.h>

namespace lockstep::verbs {
namespace {

TEST(WordsOfTest, SplitsAtCommasAndJoinsRepeatedOptions) {
  const base::CommandLine line{"plan", "[JOB]", "", {{"--on", "PLACES", ""}}, ""};
  const auto arguments = base::parse_arguments(line, {"--on", "t4, v100-16,", "--on", "here"});
  EXPECT_EQ(words_of(arguments, "--on"), (std::vector<std::string>{"t4", "v100-16", "here"}));
  EXPECT_TRUE(words_of(arguments, "--gpus").empty());
}

}  // namespace
}  // namespace lockstep::verbs
