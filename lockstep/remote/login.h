// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/site/command.h"

namespace lockstep::remote {

// A login node that plain ssh reaches: what the user's own ~/.ssh/config, keys and agent make of the name.
struct Login {
  std::string destination;  // "user@login", or a Host of ~/.ssh/config
  int64_t port = 0;         // 0: ssh's own

  bool operator==(const Login&) const = default;
};
// "user@login", "login", "ssh://user@login:2222". User error for what ssh would take for an option.
Login parse_login(const std::string& word);

// The words that run this line in a POSIX shell there, whatever the user's own is (csh, fish), and those by which rsync
// gets there.
std::vector<std::string> ssh_words(const Login& login, const std::string& line);
std::vector<std::string> rsync_words(const Login& login, const std::vector<std::string>& options);
// "user@login:PATH" as rsync takes it.
std::string there(const Login& login, const std::string& path);

// What the line said there. Machine error when nobody can be reached (ssh's exit code 255), with what ssh said.
site::Answer ask_there(const Login& login, const std::string& line, std::chrono::seconds patience);
// Machine error with what rsync said when it fails.
void copy(const Login& login, const std::vector<std::string>& words);

}  // namespace lockstep::remote
