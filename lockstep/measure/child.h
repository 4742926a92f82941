// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::measure {

// How a child process ended.
struct ChildEnd {
  int exit_code = 0;       // when it ended by itself
  std::string trouble;     // empty: exit code 0; else in words: "exit code 3", "killed by signal 9", "not done in 60 s"
  std::string last_words;  // the last two lines of its standard error, which is passed on to ours
};

// Runs the command (a path and its words; kThisProgram starts ourselves), `environment` added to ours, and waits; after
// `seconds` it is killed.
constexpr const char* kThisProgram = "/proc/self/exe";
ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment, double seconds);

}  // namespace lockstep::measure
