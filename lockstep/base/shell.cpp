// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/shell.h"

namespace lockstep::base {

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string shell_path(std::string_view path) {
  return shell_word(path.starts_with('-') ? "./" + std::string(path) : std::string(path));
}

}  // namespace lockstep::base
