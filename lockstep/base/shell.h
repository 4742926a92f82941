// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

// One word for a POSIX shell, quoted where it needs to be. Every command that a message prints is made of these: people
// paste it.
std::string shell_word(std::string_view word);
// The words as a line.
std::string shell_words(const std::vector<std::string>& words);
// A path as a word that no command takes for an option.
std::string shell_path(std::string_view path);

}  // namespace lockstep::base
