// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "lockstep/base/console.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/own_launcher.h"
#include "lockstep/site/command.h"
#include "lockstep/site/interface.h"
#include "lockstep/site/launch.h"

namespace lockstep::ranks {
namespace {

constexpr int kHeldBack[] = {SIGTERM, SIGHUP, SIGXCPU};  // an mpirun would answer each by ending its ranks

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

void stand_alone(const sigset_t& blocked, int orphaned) {
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  prctl(PR_SET_PDEATHSIG, orphaned);  // nobody else would end the ranks of a supervisor that was killed
  setpgid(0, 0);                      // Ctrl-C on the terminal shall not reach mpirun itself
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
}

[[noreturn]] void become(const std::vector<std::string>& line, const sigset_t& blocked, int orphaned) {
  stand_alone(blocked, orphaned);
  std::vector<char*> words;
  words.reserve(line.size() + 1);
  for (const auto& word : line) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> environment = site::launcher_environment(line);
  std::vector<char*> variables;
  variables.reserve(environment.size() + 1);
  for (auto& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  execvpe(words[0], words.data(), variables.data());
  _exit(127);
}

// Nothing leaves this process but through _exit: behind it lie the scopes of the supervisor, with a lock that is the
// parent's and threads that a fork does not copy.
[[noreturn]] void launch_and_exit(const std::vector<std::string>& line, int64_t ranks) {
  base::Error error(base::Blame::bug, "the launcher of the ranks failed");
  try {
    _exit(launch_ranks(line, ranks));
  } catch (const base::Error& thrown) {
    error = thrown;
  } catch (const std::exception& thrown) {
    error = base::Error(base::Blame::machine, thrown.what());
  } catch (...) {  // told as it was made
  }
  const std::string message = base::harmless(error.message()) + "\n";
  static_cast<void>(!write(STDERR_FILENO, message.data(), message.size()));
  _exit(error.exit_code());
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) base::throw_errno("waiting for mpirun");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char* program_of(Launcher kind) {
  return kind == Launcher::srun ? "srun" : "mpirun";
}

// "n1:2,n2:2": both kinds of mpirun read it so.
std::string host_words(const std::vector<site::Share>& hosts) {
  std::vector<std::string> words;
  words.reserve(hosts.size());
  for (const auto& share : hosts) words.push_back(base::text(share.host, ":", share.ranks));
  return base::join(words, ",");
}

std::vector<std::string> srun_line(const std::vector<site::Share>& hosts, int64_t ranks) {
  // --overlap: the batch script's own step holds the same processors.
  std::vector<std::string> line{"srun",      "--mpi=pmix",      "--kill-on-bad-exit=1",
                                "--overlap", "--cpu-bind=none", base::text("--ntasks=", ranks)};
  if (hosts.empty()) return line;
  std::vector<std::string> names;
  names.reserve(hosts.size());
  for (const auto& share : hosts) names.push_back(share.host);
  line.push_back(base::text("--nodes=", names.size()));
  line.push_back(base::text("--nodelist=", base::join(names, ",")));
  line.emplace_back("--distribution=block");
  return line;
}

}  // namespace

int run_ranks(const std::vector<std::string>& line) {
  const pid_t child = fork();
  if (child < 0) base::throw_errno("cannot start mpirun");
  sigset_t none;
  sigemptyset(&none);
  if (child == 0) become(line, none, SIGINT);
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

void check_gpus(int64_t ranks, int64_t hosts, int64_t gpus) {
  hosts = std::clamp<int64_t>(hosts, 1, ranks);
  if ((ranks + hosts - 1) / hosts <= gpus) return;
  throw base::Error(base::Blame::user,
                    base::text("--ranks ", ranks, " --device cuda, but ",
                               hosts > 1 ? base::text("each of the ", hosts, " hosts") : "this machine", " has ",
                               gpus == 0 ? "no" : base::text(gpus), gpus == 1 ? " GPU" : " GPUs"),
                    gpus > 0 ? base::text("--ranks ", hosts * gpus, ", or --device cpu") : "--device cpu");
}

Launcher find_launcher(const site::Scheduler& scheduler, Meet meet) {
  if (site::find_on_path("mpirun")) {
    const auto version = site::run_for_output({"mpirun", "--version"}, std::chrono::seconds(20));
    const bool open_mpi = !version || version->find("Open MPI") != std::string::npos;
    return open_mpi ? Launcher::open_mpi : Launcher::mpich;
  }
  const bool slurm = scheduler.name == site::SchedulerName::slurm && scheduler.in_allocation();
  if (slurm && site::find_on_path("srun")) return Launcher::srun;
  if (meet == Meet::on_gpus && site::allocated_hosts(scheduler).size() < 2) return Launcher::own;
  throw base::Error(base::Blame::machine, "--ranks needs mpirun, which is not on PATH",
                    "load the site's MPI module, or install it (Debian: openmpi-bin), or leave --ranks out");
}

std::vector<std::string> launch_line(Launcher kind, const std::vector<site::Share>& hosts, int64_t ranks,
                                     const std::vector<std::string>& command) {
  if (kind == Launcher::own) return command;
  std::vector<std::string> line{program_of(kind)};
  if (kind == Launcher::srun) {
    line = srun_line(hosts, ranks);
  } else if (kind == Launcher::mpich) {
    line.insert(line.end(), {"-bind-to", "none"});
    if (!hosts.empty()) line.insert(line.end(), {"-hosts", host_words(hosts)});
    line.insert(line.end(), {"-n", base::text(ranks)});
  } else {
    // Ranks bind no cores: the step decides its threads from cores and ranks. -q: the supervisor says what went wrong.
    line.insert(line.end(), {"-q", "--bind-to", "none", "--oversubscribe"});
    if (geteuid() == 0) line.emplace_back("--allow-run-as-root");
    const auto interface = site::interface_words(site::rank_interface(site::all_ranks_here(hosts)));
    line.insert(line.end(), interface.begin(), interface.end());
    if (!hosts.empty()) {
      line.insert(line.end(), {"--host", host_words(hosts)});
      const auto passed = site::pass_words();
      line.insert(line.end(), passed.begin(), passed.end());
    }
    line.insert(line.end(), {"-n", base::text(ranks)});
  }
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

pid_t start_launcher(Launcher kind, const std::vector<std::string>& line, int64_t ranks) {
  sigset_t blocked;
  sigemptyset(&blocked);
  const bool passes_on = kind == Launcher::srun || kind == Launcher::own;
  for (const int signal : kHeldBack) {
    if (!passes_on) sigaddset(&blocked, signal);
  }
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);  // also of the child, from its first moment
  const pid_t child = fork();
  const int code = errno;
  if (child != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = code;
  if (child < 0) base::throw_errno(base::text("cannot start ", line[0]));
  if (child == 0 && kind == Launcher::own) {
    stand_alone(blocked, SIGINT);
    launch_and_exit(line, ranks);
  }
  if (child == 0) become(line, blocked, kind == Launcher::srun ? SIGTERM : SIGINT);
  return child;
}

int asked_to_stop(pid_t launcher) {
  try {
    for (const auto& line : base::split(base::read_file(base::text("/proc/", launcher, "/status")), '\n')) {
      if (line.rfind("ShdPnd:", 0) != 0) continue;
      const auto pending = std::stoull(line.substr(7), nullptr, 16);
      for (const int signal : kHeldBack) {
        if ((pending >> (signal - 1) & 1) != 0) return signal;
      }
    }
  } catch (const std::exception&) {
    return 0;  // it has just ended
  }
  return 0;
}

}  // namespace lockstep::ranks
