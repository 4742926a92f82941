// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/peer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::measure {

Peer::Peer(const std::vector<std::string>& command) {
  int to[2];
  int from[2];
  // No later peer may hold an end: it would never see the end of its input.
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) base::throw_errno("cannot make a pipe");
  child_ = fork();
  if (child_ < 0) base::throw_errno("cannot start the peer");
  if (child_ == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  signal(SIGPIPE, SIG_IGN);  // a peer that is gone shows up as an error of ours
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  greeting_ = read_line();
}

Peer::~Peer() {
  fclose(to_);
  fclose(from_);
  waitpid(child_, nullptr, 0);
}

std::string Peer::read_line() {
  char line[512];
  if (!std::fgets(line, sizeof line, from_)) {
    throw base::Error(base::Blame::machine, "the peer ended without an answer",
                      "give a Python that has the packages to compare with: --peer PYTHON");
  }
  return std::string(base::trim(line));
}

std::string Peer::ask(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  return read_line();
}

}  // namespace lockstep::measure
