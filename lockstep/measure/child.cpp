// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/child.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/step/reducer.h"

namespace lockstep::measure {
namespace {

using base::text;

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& environment, int errors) {
  dup2(errors, STDERR_FILENO);
  close(errors);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> all;
  for (const auto& word : command) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  execv(all[0], all.data());
  _exit(127);
}

// Passes the child's errors on and keeps the last two lines; returns false when the time is over.
bool pass_errors_on(int from, double until, std::string& last_words) {
  std::string line;
  char bytes[4096];
  while (true) {
    const double left = until - base::steady_seconds();
    if (left <= 0) return false;
    pollfd ready{from, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min(left, 1.0) * 1000) + 1) == 0) continue;
    const ssize_t count = read(from, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (write(STDERR_FILENO, bytes, static_cast<size_t>(count)) < 0) return true;
    for (ssize_t i = 0; i < count; ++i) {
      if (bytes[i] != '\n') {
        line += bytes[i];
      } else if (!line.empty()) {
        const size_t before = last_words.rfind('\n');
        last_words = last_words.substr(before == std::string::npos ? 0 : before + 1) + "\n" + std::exchange(line, "");
      }
    }
  }
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& environment, double seconds) {
  int errors[2];
  if (pipe(errors) != 0) base::throw_errno("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) base::throw_errno("cannot start a process");
  if (child == 0) {
    close(errors[0]);
    become(command, environment, errors[1]);
  }
  close(errors[1]);
  ChildEnd end;
  const bool done = pass_errors_on(errors[0], base::steady_seconds() + seconds, end.last_words);
  std::replace(end.last_words.begin(), end.last_words.end(), '\n', ' ');
  end.last_words = base::trim(end.last_words);
  if (!done) kill(child, SIGKILL);
  close(errors[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!done) {
    end.trouble = text("not done in ", base::fixed(seconds, 0), " s");
  } else if (WIFSIGNALED(status)) {
    end.trouble = text("killed by signal ", WTERMSIG(status));
  } else if (end.exit_code != 0) {
    end.trouble = text("exit code ", end.exit_code);
  }
  return end;
}

}  // namespace lockstep::measure
