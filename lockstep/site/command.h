// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/shell.h"

namespace lockstep::site {

// The file that the shell would run for `name`; nothing when it is not on PATH.
std::optional<std::string> find_on_path(std::string_view name);

using base::shell_word;
using base::shell_words;

// Standard output of the program (at most 1 MiB), errors thrown away, no shell in between. Nothing when it cannot be
// started, exits with another code than 0, or is not done in `patience` (it is killed then).
std::optional<std::string> run_for_output(const std::vector<std::string>& words, std::chrono::milliseconds patience);

struct Answer {
  int code = -1;  // exit code; 128 + signal when a signal ended it; -1: it could not be started or took too long
  std::string out;
  std::string err;

  bool good() const { return code == 0; }
};
// As run_for_output, with what it said on standard error and how it ended.
Answer ask(const std::vector<std::string>& words, std::chrono::milliseconds patience);

}  // namespace lockstep::site
