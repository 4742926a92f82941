// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/launch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs {
namespace {

std::atomic<pid_t> launcher{0};  // only a global reaches a signal handler
std::atomic<int> interrupts{0};  // Ctrl-Cs so far

// The first wish to stop lets every rank save. A second Ctrl-C means now: mpirun ends its ranks itself, with SIGKILL
// for those that do not go; a third leaves nothing to mpirun.
void pass_on(int signal) {
  if (launcher <= 0) return;
  const int asked = signal == SIGINT ? ++interrupts : 1;
  if (asked < 3) kill(launcher, asked == 1 ? SIGUSR1 : SIGTERM);
  if (asked >= 3) kill(-launcher, SIGKILL);
}

[[noreturn]] void become(const std::vector<std::string>& line) {
  setpgid(0, 0);  // Ctrl-C on the terminal shall not reach mpirun itself
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  std::vector<char*> words;
  for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) base::throw_errno("waiting for mpirun");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::vector<std::string> mpirun_line(const std::string& program, const std::string& verb,
                                     const std::vector<std::string>& words, int64_t ranks, bool as_root) {
  // Ranks bind no cores: the step decides its threads from cores and ranks. -q: the ranks say what went wrong.
  std::vector<std::string> line{"mpirun", "-q", "--bind-to", "none", "--oversubscribe"};
  if (as_root) line.emplace_back("--allow-run-as-root");
  line.insert(line.end(), {"-n", base::text(ranks), program, verb});
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--ranks") {
      ++i;
    } else if (words[i].rfind("--ranks=", 0) != 0) {
      line.push_back(words[i]);
    }
  }
  return line;
}

int run_ranks(const std::vector<std::string>& line) {
  const pid_t child = fork();
  if (child < 0) base::throw_errno("cannot start mpirun");
  if (child == 0) become(line);
  launcher = child;
  interrupts = 0;
  struct sigaction action {};
  action.sa_handler = pass_on;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  const int code = wait_for(child);
  launcher = 0;
  if (interrupts > 1) return 128 + SIGINT;
  if (code == 127) {
    throw base::Error(base::Blame::machine, "--ranks needs mpirun, which is not on PATH",
                      "load the site's MPI module, or install it (Debian: openmpi-bin), or leave --ranks out");
  }
  return code;
}

}  // namespace lockstep::verbs
