// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/keeper.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "lockstep/run/beat.h"

namespace lockstep::ranks {
namespace {

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 500 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// A keeper and its rank in processes of their own; `rank` is what the rank does.
class KeptRank {
 public:
  explicit KeptRank(const std::function<void()>& rank) : post_{"world", 1, folder_.path() / "1.beat", latest()} {
    base::write_file(latest(), "world");
    keeper_ = ::fork();
    if (keeper_ == 0) {
      if (const auto code = keep_rank(post_)) ::_exit(*code);
      std::signal(SIGTERM, SIG_DFL);  // a test before this one may have left its handler
      run::Beat beat;
      beat.world = post_.world;
      beat.rank = post_.rank;
      beat.step = 12;
      beat.who = run::this_process();
      beat.who.since.clear();
      run::write_beat(post_.beat, beat);
      rank();
      ::_exit(0);
    }
    wait_until([&] { return run::read_beat(post_.beat).has_value(); });
  }
  run::Beat beat() const { return run::read_beat(post_.beat).value(); }
  pid_t keeper() const { return keeper_; }
  base::Path latest() const { return folder_.path() / "world"; }
  int wait() const {
    int status = 0;
    ::waitpid(keeper_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  base::TemporaryFolder folder_;
  Post post_;
  pid_t keeper_ = 0;
};

TEST(KeeperTest, GivesTheExitCodeOfItsRank) {
  const KeptRank kept([] { ::_exit(85); });
  EXPECT_EQ(kept.wait(), 85);
  EXPECT_EQ(kept.beat().end.value().code, 85);
  EXPECT_EQ(kept.beat().end.value().signal, 0);
}

TEST(KeeperTest, SaysWhichSignalKilledItsRankAndWhatItHeld) {
  const KeptRank kept([] { ::raise(SIGKILL); });
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
  const run::Beat beat = kept.beat();
  EXPECT_EQ(beat.end.value().signal, SIGKILL);
  EXPECT_FALSE(beat.end.value().asked);
  EXPECT_GT(beat.end.value().peak_bytes, 1'000'000);
  EXPECT_EQ(beat.step, 12);  // the last word of the rank stays
}

TEST(KeeperTest, PassesOnTheWishToGoAndRemembersIt) {
  const KeptRank kept([] { ::pause(); });
  ::kill(kept.keeper(), SIGTERM);
  EXPECT_EQ(kept.wait(), 128 + SIGTERM);
  EXPECT_TRUE(kept.beat().end.value().asked);
}

TEST(KeeperTest, TellsThatItsRankWasStopped) {
  const KeptRank kept([] { ::pause(); });
  ::kill(static_cast<pid_t>(kept.beat().who.pid), SIGSTOP);
  wait_until([&] { return kept.beat().stopped; });
  EXPECT_TRUE(kept.beat().stopped);
  ::kill(static_cast<pid_t>(kept.beat().who.pid), SIGKILL);
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
}

TEST(KeeperTest, ItsRankDoesNotOutliveIt) {
  const KeptRank kept([] { ::pause(); });
  const run::Holder rank = kept.beat().who;
  EXPECT_TRUE(run::is_running(rank));
  ::kill(kept.keeper(), SIGKILL);
  EXPECT_EQ(kept.wait(), -SIGKILL);
  wait_until([&] { return !run::is_running(rank); });
  EXPECT_FALSE(run::is_running(rank));
}

TEST(KeeperTest, EndsARankThatOthersHaveReplaced) {
  const KeptRank kept([] { ::pause(); });
  base::write_file(kept.latest(), "the next world");
  EXPECT_EQ(kept.wait(), 128 + SIGKILL);
}

}  // namespace
}  // namespace lockstep::ranks
