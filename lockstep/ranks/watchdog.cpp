// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/watchdog.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/heartbeat.h"

namespace lockstep::ranks {
namespace {

// The kernel's count of processes that it killed for want of memory on this host (containers and jobs included).
int64_t kernel_kills() {
  try {
    for (const auto& line : base::split(base::read_file("/proc/vmstat"), '\n')) {
      if (line.rfind("oom_kill ", 0) == 0) return std::stoll(line.substr(9));
    }
  } catch (const std::exception&) {
    return 0;  // an old kernel does not count
  }
  return 0;
}

// The kernel counts a kill when it decides on it; to take a large process apart may need seconds on a busy host.
constexpr std::time_t kKillWindow = 10;
constexpr uint64_t kMostBytes = 4096;  // of the files that are looked at twice a second

class Watchdog {
 public:
  Watchdog(WorkerSlot slot, pid_t rank, const sigset_t& signals)
      : slot_(std::move(slot)), rank_(rank), signals_(signals), launcher_(::getppid()) {}

  int keep() {
    while (true) {
      const timespec pause{0, 500'000'000};
      const int signal = ::sigtimedwait(&signals_, nullptr, &pause);
      if (signal == SIGTERM || signal == SIGINT) asked_ = true;
      if (signal > 0 && signal != SIGCHLD) ::kill(rank_, signal);
      // Without its launcher a rank has no peers; when others have taken over it must not touch the run again.
      if (::getppid() != launcher_ || replaced()) ::kill(rank_, SIGKILL);
      // Again and again: it may have come before the rank could hear it, and who heard it loses nothing.
      if (!content_of(slot_.stop).empty()) ::kill(rank_, SIGUSR1);
      if (const auto code = look()) return *code;
      if (std::time(nullptr) >= looked_ + kKillWindow) {
        kills_before_ = std::exchange(kills_, kernel_kills());
        looked_ = std::time(nullptr);
      }
    }
  }

 private:
  // Empty also where the file system does not answer, which is no reason to end a rank.
  static std::string content_of(const base::Path& file) {
    if (file.empty()) return "";
    try {
      return base::read_file(file, kMostBytes);
    } catch (const base::Error&) {
      return "";
    }
  }

  bool replaced() const {
    const std::string latest = content_of(slot_.latest);
    return !latest.empty() && latest != slot_.world;
  }

  std::optional<int> look() {
    int status = 0;
    rusage used{};
    if (::wait4(rank_, &status, WNOHANG | WUNTRACED | WCONTINUED, &used) != rank_) return std::nullopt;
    if (WIFSTOPPED(status)) {
      note([](run::Heartbeat& heartbeat) { heartbeat.stopped = true; });
      return std::nullopt;
    }
    if (WIFCONTINUED(status)) return std::nullopt;
    run::RankEnd end;
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    end.asked = asked_;
    end.out_of_memory = end.signal == SIGKILL && kernel_kills() > kills_before_;
    end.peak_bytes = int64_t{used.ru_maxrss} * 1024;
    note([&](run::Heartbeat& heartbeat) { heartbeat.end = end; });
    return end.signal != 0 ? 128 + end.signal : end.code;
  }

  template <class Change>
  void note(Change change) {
    run::Heartbeat heartbeat = run::read_heartbeat(slot_.heartbeat).value_or(run::Heartbeat{});
    if (heartbeat.world != slot_.world) {  // it never came to its first heartbeat
      heartbeat = {};
      heartbeat.world = slot_.world;
      heartbeat.rank = slot_.rank;
      heartbeat.who = run::this_process();
      heartbeat.who.since.clear();
    }
    change(heartbeat);
    try {
      run::write_heartbeat(slot_.heartbeat, heartbeat);
    } catch (const base::Error&) {
      // The launcher still gives the exit code.
    }
  }

  WorkerSlot slot_;
  pid_t rank_;
  sigset_t signals_;
  pid_t launcher_;
  int64_t kills_ = kernel_kills();
  int64_t kills_before_ = kills_;  // counted a window or two ago
  std::time_t looked_ = std::time(nullptr);
  bool asked_ = false;
};

}  // namespace

std::optional<int> watch_rank(const WorkerSlot& slot) {
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU, SIGPIPE})
    sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t watchdog = ::getpid();
  const pid_t rank = ::fork();
  if (rank < 0) base::throw_errno("cannot start the process of a rank");
  if (rank > 0) return Watchdog(slot, rank, signals).keep();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != watchdog) ::_exit(128 + SIGKILL);
  ::setpgid(0, 0);                // what a launcher sends to the watchdog's group comes once, from the watchdog
  std::signal(SIGUSR1, SIG_IGN);  // until the training can hear it, and when it has ended
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return std::nullopt;
}

}  // namespace lockstep::ranks
