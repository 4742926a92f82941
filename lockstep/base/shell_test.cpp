// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/shell.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace lockstep::base {
namespace {

std::string read_back(const std::string& line) {
  std::string all;
  FILE* shell = ::popen(("printf '%s|' " + line).c_str(), "r");
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, shell) != nullptr) all += buffer;
  ::pclose(shell);
  return all;
}

TEST(ShellTest, TheShellReadsBackWhatWasMeant) {
  EXPECT_EQ(shell_words({"job.json", "--set", "name=a b", "it's", ""}), R"(job.json --set 'name=a b' 'it'\''s' '')");
  const std::vector<std::string> odd{"a b", "it's", "$HOME", "`id`", "a;b", "", "-x", "~", "\"", "a\nb", "*"};
  std::string expected;
  for (const auto& word : odd) expected += word + "|";
  EXPECT_EQ(read_back(shell_words(odd)), expected);
}

TEST(ShellTest, APathIsNoOption) {
  EXPECT_EQ(shell_path("runs/a"), "runs/a");
  EXPECT_EQ(shell_path("-rf"), "./-rf");
  EXPECT_EQ(read_back(shell_path("-r f")), "./-r f|");
}

}  // namespace
}  // namespace lockstep::base
