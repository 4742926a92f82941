// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

using Clock = std::chrono::steady_clock;

// Reads both pipes until they end, `deadline` passes or an answer is absurdly long. True when they ended.
bool read_until(int out_pipe, int err_pipe, Clock::time_point deadline, Answer& answer) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  char buffer[4096];
  pollfd waiting[2]{{out_pipe, POLLIN, 0}, {err_pipe, POLLIN, 0}};  // a negative one is passed over by poll
  std::string* texts[2]{&answer.out, &answer.err};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    const int ready = ::poll(waiting, 2, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      const ssize_t got = ::read(waiting[i].fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return false;
      if (got == 0) waiting[i].fd = -1;
      texts[i]->append(buffer, static_cast<size_t>(got));
      if (texts[i]->size() >= kMostBytes) return false;
    }
  }
  return true;
}

std::optional<pid_t> start(const std::vector<std::string>& words, int out_end, int err_end) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_end, STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  return child;
}

}  // namespace

std::optional<std::string> find_on_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  for (const auto& folder : base::split(path ? path : "/usr/bin:/bin", ':')) {
    std::string file = base::text(folder.empty() ? "." : folder, "/", name);
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

Answer ask(const std::vector<std::string>& words, std::chrono::milliseconds patience) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return {};
  if (::pipe2(err, O_CLOEXEC) != 0) return ::close(out[0]), ::close(out[1]), Answer{};
  const auto child = start(words, out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  Answer answer;
  const bool ended = child && read_until(out[0], err[0], Clock::now() + patience, answer);
  ::close(out[0]);
  ::close(err[0]);
  if (!child) return answer;
  if (!ended) ::kill(*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended) answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

std::optional<std::string> run_for_output(const std::vector<std::string>& words, std::chrono::milliseconds patience) {
  Answer answer = ask(words, patience);
  if (!answer.good()) return std::nullopt;
  return std::move(answer.out);
}

}  // namespace lockstep::site
