// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/own_launcher.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::ranks {
namespace {

using base::text;
using Clock = std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(2);  // as mpirun gives them
constexpr int kNoProgram = 127;

// Made with a name that nobody can guess, for this user alone (mkdtemp), and gone with the ranks.
class RendezvousFolder {
 public:
  RendezvousFolder() {
    std::error_code none;
    const auto folder = std::filesystem::temp_directory_path(none);
    if (none) {
      const char* named = std::getenv("TMPDIR");
      throw base::Error(base::Blame::machine,
                        text("the ranks cannot meet: ", named ? text("TMPDIR=", named) : "/tmp", " is no folder"),
                        "name a folder of this host: export TMPDIR=/tmp");
    }
    name_ = (folder / "lockstep-ranks-XXXXXX").string();
    if (!::mkdtemp(name_.data())) base::throw_errno("cannot make a folder for the ranks to meet in");
  }
  ~RendezvousFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

[[noreturn]] void become_rank(const std::vector<std::string>& command, const sigset_t& signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(kNoProgram);
}

class OwnLauncher {
 public:
  OwnLauncher() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU, SIGCHLD}) sigaddset(&signals_, signal);
    ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }

  int run(const std::vector<std::string>& command, int64_t ranks) {
    const RendezvousFolder rendezvous;
    ::setenv("LOCKSTEP_RENDEZVOUS", rendezvous.name().c_str(), 1);
    ::setenv("LOCKSTEP_SIZE", text(ranks).c_str(), 1);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      ::setenv("LOCKSTEP_RANK", text(rank).c_str(), 1);
      const pid_t child = ::fork();
      if (child == 0) become_rank(command, signals_);
      if (child < 0) {
        end_all(static_cast<int>(base::Blame::machine));
        break;
      }
      living_.push_back(child);
    }
    while (!living_.empty()) {
      heed();
      reap();
      if (kill_at_ && Clock::now() > *kill_at_) send(SIGKILL);
    }
    return code_;
  }

 private:
  void heed() {
    const timespec pause{0, 200'000'000};
    const int signal = ::sigtimedwait(&signals_, nullptr, &pause);
    if (signal == SIGINT) end_all(128 + SIGINT);
    if (signal > 0 && signal != SIGINT && signal != SIGCHLD) send(SIGUSR1);
  }

  void reap() {
    for (size_t i = 0; i < living_.size();) {
      int status = 0;
      if (::waitpid(living_[i], &status, WNOHANG) != living_[i]) {
        ++i;
        continue;
      }
      living_.erase(living_.begin() + static_cast<int64_t>(i));
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == base::kExitRequeue && !kill_at_) code_ = code;
      if (code != base::kExitDone && code != base::kExitRequeue) end_all(code);
    }
  }

  // The first reason counts: what follows is its consequence.
  void end_all(int code) {
    if (kill_at_) return;
    code_ = code;
    kill_at_ = Clock::now() + kGrace;
    send(SIGTERM);
  }

  void send(int signal) const {
    for (const pid_t rank : living_) ::kill(rank, signal);
  }

  sigset_t signals_;
  std::vector<pid_t> living_;
  int code_ = 0;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

int launch_ranks(const std::vector<std::string>& command, int64_t ranks) {
  return OwnLauncher().run(command, ranks);
}

}  // namespace lockstep::ranks
