// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/world.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/run/stop.h"

namespace lockstep::ranks {
namespace {

using base::text;

constexpr double kLook = 0.2;        // seconds between two looks at the heartbeats
constexpr double kOwnHeartbeat = 1;  // seconds between two words of our own
constexpr double kGap = 3;           // a longer pause is our own: suspended, or the file system stood still
constexpr double kTimeToGo = 8;      // mpirun needs 2 s to kill its ranks and some to tidy up
constexpr int kCannotStart = 127;    // what start_launcher()'s child gives when the program is not there

// Standard output or error is a pipe whose reader has gone. The launcher writes there for the ranks, and mpirun ends
// them after some failed writes: they are asked to save before that.
bool nobody_reads() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return false;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    pollfd looked{descriptor, 0, 0};
    if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) continue;
    if (::poll(&looked, 1, 0) == 1 && (looked.revents & POLLERR) != 0) return true;
  }
  return false;
}

// Whether this process was started as a rank of that start. Its heartbeat only says so, and lies in a folder where
// others may write.
bool is_rank_of(const std::string& world, int64_t pid) {
  try {
    const std::string environment = base::read_file(text("/proc/", pid, "/environ")) + '\0';
    return environment.find(text(kWorldVariable, "=", world) + '\0') != std::string::npos;
  } catch (const base::Error&) {
    return false;  // gone, or of another user
  }
}

class World {
 public:
  World(const WorldPlan& plan, const SignalInbox& inbox, StopWish& wish)
      : plan_(plan), inbox_(inbox), wish_(wish), seen_(static_cast<size_t>(plan.ranks)) {
    own_.world = plan.name;
    own_.rank = -1;
    own_.who = run::this_process();
    own_.who.since.clear();
  }

  WorldEnd run() {
    prepare_files();
    looked_ = base::steady_seconds();
    for (auto& rank : seen_) rank.spoke = rank.moved = looked_;
    launcher_ = start_launcher(plan_.launcher, plan_.line, plan_.ranks);
    std::optional<Fault> fault;
    while (!fault) {
      heed(inbox_.take(kLook));
      if (reap(WNOHANG)) break;
      if (wish_.why.empty()) heed(asked_to_stop(launcher_));
      if (wish_.why.empty() && nobody_reads()) heed(SIGPIPE);
      look();
      remind();
      fault = find_fault(observations(), plan_.patience);
    }
    noticed_ = base::unix_seconds();
    if (fault) end_all();
    kill_leftovers();
    return sum_up(std::move(fault));
  }

 private:
  struct Seen {
    std::optional<run::Heartbeat> heartbeat;
    double spoke = 0, moved = 0;  // when, by our clock
  };

  // All names are there before the ranks start: a name that appears later is seen late on shared file systems.
  void prepare_files() const {
    for (int64_t rank = 0; rank < plan_.ranks; ++rank) {
      const auto path = run::heartbeat_path(plan_.run, rank);
      base::make_folders(path.parent_path());
      base::write_file(path, "");
    }
    base::write_file(run::stop_path(plan_.run), wish_.why);
    base::write_file(run::world_path(plan_.run), plan_.name);
  }

  // The same write as a rank's: a file system that takes none makes us wait as well, and then nobody is blamed.
  void probe() {
    if (base::steady_seconds() < probed_ + kOwnHeartbeat) return;
    own_.count += 1;
    try {
      run::write_heartbeat(run::world_path(plan_.run).parent_path() / "supervisor.heartbeat", own_);
    } catch (const base::Error&) {
      // Full or gone: the ranks will say so.
    }
    probed_ = base::steady_seconds();
  }

  void look() {
    probe();
    // Somebody stopped us, or the file system did not answer: the ranks may have suffered the same, and start over.
    const double paused = base::steady_seconds() - looked_;
    for (size_t i = 0; i < seen_.size(); ++i) {
      Seen& rank = seen_[i];
      if (paused > kGap) rank.spoke = rank.moved = base::steady_seconds();
      const auto heartbeat = run::read_heartbeat(run::heartbeat_path(plan_.run, static_cast<int64_t>(i)));
      if (!heartbeat || heartbeat->world != plan_.name) continue;
      const auto& last = rank.heartbeat;
      if (!last || last->count != heartbeat->count) rank.spoke = base::steady_seconds();
      if (!last || last->moves != heartbeat->moves || last->calls != heartbeat->calls ||
          last->answered != heartbeat->answered) {
        rank.moved = base::steady_seconds();
      }
      rank.heartbeat = heartbeat;
    }
    looked_ = base::steady_seconds();
  }

  std::vector<Observation> observations() const {
    std::vector<Observation> all;
    for (const auto& rank : seen_) all.push_back({rank.heartbeat, looked_ - rank.spoke, looked_ - rank.moved});
    return all;
  }

  // The first wish to stop lets every rank save: mpirun and srun pass SIGUSR1 on. A second Ctrl-C means now, a third
  // leaves nothing to the launcher.
  void heed(int signal) {
    if (signal == 0 || signal == SIGCHLD) return;
    if (signal == SIGINT) ++wish_.interrupts;
    const bool first = wish_.why.empty();
    if (first) tell_reason(run::stop_signal_name(signal));
    if (wish_.interrupts >= 3) {
      ::kill(-launcher_, SIGKILL);
    } else if (wish_.interrupts == 2 && signal == SIGINT) {
      plan_.say("second Ctrl-C: ending all ranks at once; the steps since the newest checkpoint are lost");
      ::kill(launcher_, SIGINT);
    } else if (first) {
      plan_.say(text(wish_.why, ": all ranks stop after their step, then save",
                     signal == SIGINT ? "; Ctrl-C again ends them at once, unsaved" : ""));
      ::kill(launcher_, SIGUSR1);
    }
  }

  // The ranks hear SIGUSR1 whatever came to us, and find here what it was.
  void tell_reason(std::string why) {
    wish_.why = std::move(why);
    try {
      base::write_file(run::stop_path(plan_.run), wish_.why);
    } catch (const base::Error&) {  // they call it SIGUSR1 then
    }
  }

  // A launcher that had not started its ranks when the wish came had nobody to pass it on to. Once more when all of
  // them speak, and so hear: who heard it before loses nothing. Never to a rank that is about to go.
  void remind() {
    if (all_spoke_) return;
    all_spoke_ = std::all_of(seen_.begin(), seen_.end(), [](const Seen& rank) { return rank.heartbeat.has_value(); });
    const bool ending = std::any_of(seen_.begin(), seen_.end(), [](const Seen& rank) {
      return rank.heartbeat && (rank.heartbeat->end || rank.heartbeat->phase == run::Phase::ending);
    });
    if (all_spoke_ && !ending && !wish_.why.empty() && wish_.interrupts < 2) ::kill(launcher_, SIGUSR1);
  }

  bool reap(int options) {
    if (gone_) return true;
    int status = 0;
    const pid_t found = ::waitpid(launcher_, &status, options);
    if (found < 0 && errno != EINTR) base::throw_errno("waiting for the launcher of the ranks");
    if (found != launcher_) return false;
    gone_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }

  void end_all() {
    ::kill(launcher_, SIGINT);
    const double until = base::steady_seconds() + kTimeToGo;
    while (!reap(WNOHANG) && base::steady_seconds() < until) heed(inbox_.take(kLook));
    if (!gone_) ::kill(-launcher_, SIGKILL);
    while (!reap(0)) continue;
  }

  // Ranks whose launcher was killed go by themselves within half a second; stopped ones need help.
  void kill_leftovers() {
    look();
    const run::Holder self = run::this_process();
    for (const auto& rank : seen_) {
      if (!rank.heartbeat || !run::same_host(rank.heartbeat->who, self)) continue;
      const run::Holder& who = rank.heartbeat->who;
      if (run::is_running(who) && is_rank_of(plan_.name, who.pid)) ::kill(static_cast<pid_t>(who.pid), SIGKILL);
    }
  }

  WorldEnd sum_up(std::optional<Fault> fault) const {
    WorldEnd end;
    end.noticed = noticed_;
    end.first = seen_[0].heartbeat;
    for (const auto& rank : seen_) end.spoke += rank.heartbeat ? 1 : 0;
    end.fault = fault ? std::move(fault) : fault_of_ended();
    if (!end.fault) end.code = code_of_ended();
    return end;
  }

  // The launcher has ended by itself: was it a fault?
  std::optional<Fault> fault_of_ended() const {
    if (wish_.interrupts > 1) return std::nullopt;
    if (code_ == kCannotStart && !seen_[0].heartbeat) {
      throw base::Error(base::Blame::machine, text("cannot start ", plan_.line[0]), "is it on PATH on every node?");
    }
    if (auto fault = find_fault(observations(), plan_.patience)) return fault;
    for (const int known : {base::kExitDone, base::kExitRequeue, 2, 3, 4}) {
      if (code_of_ended() == known) return std::nullopt;
    }
    Fault fault;
    const bool spoke =
        std::any_of(seen_.begin(), seen_.end(), [](const auto& rank) { return rank.heartbeat.has_value(); });
    // 128 + signal: it was killed, or a rank was. Above that mpirun tells of a node that it could not reach (ssh's
    // 255).
    const bool killed = code_ > 128 && code_ <= 128 + SIGRTMAX;
    fault.kind = spoke || killed ? Fault::Kind::launcher : Fault::Kind::not_started;
    for (const auto& rank : seen_) fault.step = std::max(fault.step, rank.heartbeat ? rank.heartbeat->step : 0);
    fault.what = text(plan_.line[0], " ended with code ", code_,
                      spoke ? text(" after step ", fault.step) : " before any rank said a word");
    return fault;
  }

  // A rank that told an error, or stopped in order, says more than its launcher.
  int code_of_ended() const {
    if (wish_.interrupts > 1) return 128 + SIGINT;
    int code = code_;
    for (const auto& rank : seen_) {
      if (!rank.heartbeat || !rank.heartbeat->end || rank.heartbeat->end->signal != 0) continue;
      const int own = rank.heartbeat->end->code;
      if (!rank.heartbeat->end->asked && own >= 2 && own <= 4) return own;
      if (own == base::kExitRequeue) code = own;
    }
    return code;
  }

  const WorldPlan& plan_;
  const SignalInbox& inbox_;
  StopWish& wish_;
  std::vector<Seen> seen_;
  run::Heartbeat own_;
  double probed_ = 0;
  pid_t launcher_ = 0;
  bool gone_ = false;
  bool all_spoke_ = false;
  int code_ = 0;
  double looked_ = 0;
  double noticed_ = 0;
};

}  // namespace

SignalInbox::SignalInbox() {
  sigemptyset(&signals_);
  for (const int signal : run::stop_signals()) sigaddset(&signals_, signal);
  sigaddset(&signals_, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &signals_, &before_);
}

// A stop that came when everything was over has nothing to stop: let through now, it would end a run that is done.
SignalInbox::~SignalInbox() {
  while (take(0) != 0) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int SignalInbox::take(double seconds) const {
  const timespec pause{static_cast<time_t>(seconds),
                       static_cast<long>((seconds - static_cast<int64_t>(seconds)) * 1e9)};
  return std::max(0, ::sigtimedwait(&signals_, nullptr, &pause));
}

WorldEnd run_world(const WorldPlan& plan, const SignalInbox& inbox, StopWish& wish) {
  return World(plan, inbox, wish).run();
}

}  // namespace lockstep::ranks
