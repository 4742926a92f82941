// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/login.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/base64.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"

namespace lockstep::remote {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr std::chrono::hours kCopyPatience{24};

// One that does not answer is told of after this long.
std::vector<std::string> ssh_options(const Login& login) {
  std::vector<std::string> words{"ssh", "-T", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=30"};
  if (login.port > 0) words.insert(words.end(), {"-p", text(login.port)});
  return words;
}

std::string last_words(const std::string& said) {
  const auto whole = base::trim(said);
  return std::string(whole.substr(whole.rfind('\n') == std::string_view::npos ? 0 : whole.rfind('\n') + 1));
}

}  // namespace

Login parse_login(const std::string& word) {
  const auto refuse = [&](const char* what) {
    return Error(Blame::user, text("--via '", word, "': ", what), "--via user@login, or a Host of ~/.ssh/config");
  };
  Login login;
  std::string rest = word;
  if (rest.starts_with("ssh://")) {
    rest = rest.substr(6);
    if (const size_t colon = rest.rfind(':'); colon != std::string::npos) {
      const char* first = rest.data() + colon + 1;
      const char* last = rest.data() + rest.size();
      const auto [end, error] = std::from_chars(first, last, login.port);
      if (error != std::errc() || end != last || login.port < 1 || login.port > 65535) throw refuse("that is no port");
      rest.resize(colon);
    }
  }
  const bool plain = std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (rest.empty() || !plain || rest.find_first_of("/:'\"\\$`;|&<>()*?") != std::string::npos) {
    throw refuse("that is no name of a login node");
  }
  if (rest.front() == '-' || rest.find("@-") != std::string::npos) throw refuse("ssh would take it for an option");
  login.destination = rest;
  return login;
}

// The user's shell there reads the words first, and shells do not agree on quoting: within apostrophes fish takes a
// backslash for its own, csh a '!'. So the line travels in letters that mean the same to all of them.
std::vector<std::string> ssh_words(const Login& login, const std::string& line) {
  auto words = ssh_options(login);
  words.insert(words.end(), {"--", login.destination,
                             text("/bin/sh -c 'eval \"$(printf %s ", base::to_base64(line), " | base64 -d)\"'")});
  return words;
}

std::vector<std::string> rsync_words(const Login& login, const std::vector<std::string>& options) {
  std::vector<std::string> words{"rsync", "-a", "--protect-args", "-e", base::shell_words(ssh_options(login))};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  return words;
}

std::string there(const Login& login, const std::string& path) {
  return text(login.destination, ":", path);
}

site::Answer ask_there(const Login& login, const std::string& line, std::chrono::seconds patience) {
  if (!site::find_on_path("ssh")) throw Error(Blame::machine, "ssh is not on PATH here", "install openssh-client");
  site::Answer answer = site::ask(ssh_words(login, line), patience);
  if (answer.code == -1) {
    throw Error(Blame::machine, text(login.destination, " did not answer in ", patience.count(), " s"),
                text("try: ssh ", login.destination));
  }
  if (answer.code == 255) {
    throw Error(Blame::machine, text("cannot log in to ", login.destination, ": ", last_words(answer.err)),
                text("this must work by itself: ssh ", login.port > 0 ? text("-p ", login.port, " ") : "",
                     login.destination, " true"));
  }
  return answer;
}

void copy(const Login& login, const std::vector<std::string>& words) {
  if (!site::find_on_path("rsync")) throw Error(Blame::machine, "rsync is not on PATH here", "install rsync");
  const site::Answer answer = site::ask(words, kCopyPatience);
  if (answer.good()) return;
  const bool missing = answer.code == 127 || answer.err.find("rsync: command not found") != std::string::npos ||
                       answer.err.find("rsync: not found") != std::string::npos;
  throw Error(
      Blame::machine,
      text("rsync to or from ", login.destination, " ended with exit code ", answer.code, ": ", last_words(answer.err)),
      missing ? "rsync must be installed there, too" : "the same command copies what is missing");
}

}  // namespace lockstep::remote
