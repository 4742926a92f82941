// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/watchdog.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "lockstep/run/heartbeat.h"
#include "lockstep/run/stop.h"

namespace lockstep::ranks {
namespace {

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// A watchdog and its rank in processes of their own; `rank` is what the rank does.
class WatchedRank {
 public:
  explicit WatchedRank(const std::function<void()>& rank)
      : slot_{"world", 1, folder_.path() / "1.heartbeat", latest(), stop()} {
    base::write_file(latest(), "world");
    base::write_file(stop(), "");
    watchdog_ = ::fork();
    if (watchdog_ == 0) {
      if (const auto code = watch_rank(slot_)) ::_exit(*code);
      std::signal(SIGTERM, SIG_DFL);  // a test before this one may have left its handler
      run::Heartbeat heartbeat;
      heartbeat.world = slot_.world;
      heartbeat.rank = slot_.rank;
      heartbeat.step = 12;
      heartbeat.who = run::this_process();
      heartbeat.who.since.clear();
      run::write_heartbeat(slot_.heartbeat, heartbeat);
      rank();
      ::_exit(0);
    }
    wait_until([&] { return run::read_heartbeat(slot_.heartbeat).has_value(); });
  }
  run::Heartbeat heartbeat() const { return run::read_heartbeat(slot_.heartbeat).value(); }
  pid_t watchdog() const { return watchdog_; }
  base::Path latest() const { return folder_.path() / "world"; }
  base::Path stop() const { return folder_.path() / "stop"; }
  int wait() const {
    int status = 0;
    ::waitpid(watchdog_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  base::TemporaryFolder folder_;
  WorkerSlot slot_;
  pid_t watchdog_ = 0;
};

TEST(WatchdogTest, GivesTheExitCodeOfItsRank) {
  const WatchedRank kept([] { ::_exit(85); });
  EXPECT_EQ(kept.wait(), 85);
  EXPECT_EQ(kept.heartbeat().end.value().code, 85);
  EXPECT_EQ(kept.heartbeat().end.value().signal, 0);
}

TEST(WatchdogTest, SaysWhichSignalKilledItsRankAndWhatItHeld) {
  const WatchedRank kept([] { ::raise(SIGKILL); });
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
  const run::Heartbeat heartbeat = kept.heartbeat();
  EXPECT_EQ(heartbeat.end.value().signal, SIGKILL);
  EXPECT_FALSE(heartbeat.end.value().asked);
  EXPECT_GT(heartbeat.end.value().peak_bytes, 1'000'000);
  EXPECT_EQ(heartbeat.step, 12);  // the last word of the rank stays
}

TEST(WatchdogTest, PassesOnTheWishToGoAndRemembersIt) {
  const WatchedRank kept([] { ::pause(); });
  ::kill(kept.watchdog(), SIGTERM);
  EXPECT_EQ(kept.wait(), 128 + SIGTERM);
  EXPECT_TRUE(kept.heartbeat().end.value().asked);
}

TEST(WatchdogTest, TellsThatItsRankWasStopped) {
  const WatchedRank kept([] { ::pause(); });
  ::kill(static_cast<pid_t>(kept.heartbeat().who.pid), SIGSTOP);
  wait_until([&] { return kept.heartbeat().stopped; });
  EXPECT_TRUE(kept.heartbeat().stopped);
  ::kill(static_cast<pid_t>(kept.heartbeat().who.pid), SIGKILL);
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
}

TEST(WatchdogTest, ItsRankDoesNotOutliveIt) {
  const WatchedRank kept([] { ::pause(); });
  const run::Holder rank = kept.heartbeat().who;
  EXPECT_TRUE(run::is_running(rank));
  ::kill(kept.watchdog(), SIGKILL);
  EXPECT_EQ(kept.wait(), -SIGKILL);
  wait_until([&] { return !run::is_running(rank); });
  EXPECT_FALSE(run::is_running(rank));
}

TEST(WatchdogTest, EndsARankThatOthersHaveReplaced) {
  const WatchedRank kept([] { ::pause(); });
  base::write_file(kept.latest(), "the next world");
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
}

// Some mpiruns pass no signal on; the supervisor has written down that all shall stop.
TEST(WatchdogTest, TheWishToStopReachesItsRankWithoutASignal) {
  const WatchedRank kept([] {
    const run::StopSignals signals;
    wait_until([&] { return signals.received() != 0; });
    ::_exit(signals.received() == SIGUSR1 ? 85 : 1);
  });
  base::write_file(kept.stop(), "SIGTERM");
  EXPECT_EQ(kept.wait(), 85);
}

TEST(WatchdogTest, AWishThatComesBeforeItsRankCanHearItEndsNobody) {
  const WatchedRank kept([] {
    struct sigaction now {};
    ::sigaction(SIGUSR1, nullptr, &now);
    ::_exit(now.sa_handler == SIG_IGN ? 85 : 1);
  });
  EXPECT_EQ(kept.wait(), 85);
}

}  // namespace
}  // namespace lockstep::ranks
