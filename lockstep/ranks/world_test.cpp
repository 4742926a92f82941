// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::ranks {
namespace {

using base::text;
using ::testing::HasSubstr;

// A world of two ranks whose launcher is an ordinary program; the ranks' words are the test's own.
class WorldTest : public ::testing::Test {
 protected:
  WorldTest() {
    plan_.name = "world";
    plan_.run = folder_.path();
    plan_.ranks = 2;
  }
  WorldEnd run(std::vector<std::string> line) {
    plan_.line = std::move(line);
    return run_world(plan_, inbox_, wish_);
  }
  // Heartbeats of both ranks once the world is there; `change` makes them what the test needs.
  std::jthread ranks_that(const std::function<void(run::Heartbeat&)>& change) {
    return std::jthread([this, change] {
      while (!std::filesystem::exists(run::world_path(plan_.run))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      for (int64_t rank = 0; rank < 2; ++rank) {
        run::Heartbeat heartbeat;
        heartbeat.world = "world";
        heartbeat.rank = rank;
        heartbeat.who = {"elsewhere", "x", 1, 1, ""};
        heartbeat.step = 30;
        change(heartbeat);
        run::write_heartbeat(run::heartbeat_path(plan_.run, rank), heartbeat);
      }
    });
  }

  // A script says by a file how far it is; a test that only slept would depend on the load.
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  void await(const std::string& name) const {
    while (!std::filesystem::exists(file(name))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  base::TemporaryFolder folder_;
  SignalInbox inbox_;
  StopWish wish_;
  WorldPlan plan_;
};

TEST(SignalInboxTest, AStopThatNobodyTookEndsNothingAfterwards) {
  EXPECT_EXIT(
      {
        {
          const SignalInbox inbox;
          ::raise(SIGTERM);
          ::raise(SIGUSR1);
        }
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(WorldTest, GivesTheCodeOfRanksThatEndInOrder) {
  for (const int code : {0, 85, 2, 3, 4}) {
    const WorldEnd end = run({"sh", "-c", "exit " + std::to_string(code)});
    EXPECT_FALSE(end.fault) << code;
    EXPECT_EQ(end.code, code);
  }
}

TEST_F(WorldTest, ALauncherThatDiesIsAFault) {
  const WorldEnd end = run({"sh", "-c", "kill -9 $$"});
  ASSERT_TRUE(end.fault);
  EXPECT_EQ(end.fault->kind, Fault::Kind::launcher);
  EXPECT_THAT(end.fault->what, HasSubstr("ended with code 137"));
  EXPECT_EQ(end.spoke, 0);
}

// What ssh ends with when it may not log in comes through mpirun as it is.
TEST_F(WorldTest, ALauncherThatReachesNoNodeHasStartedNobody) {
  for (const char* code : {"255", "254", "213", "1"}) {
    const WorldEnd end = run({"sh", "-c", text("exit ", code)});
    ASSERT_TRUE(end.fault) << code;
    EXPECT_EQ(end.fault->kind, Fault::Kind::not_started) << code;
  }
}

TEST_F(WorldTest, ALauncherThatIsNotThereIsAMachineError) {
  EXPECT_THROW(run({file("absent/mpirun")}), base::Error);
}

TEST_F(WorldTest, EndsTheWorldAtOnceWhenARankWasKilled) {
  const auto start = std::chrono::steady_clock::now();
  const auto ranks = ranks_that([](run::Heartbeat& heartbeat) {
    if (heartbeat.rank == 1) heartbeat.end = run::RankEnd{.signal = SIGKILL};
  });
  const WorldEnd end = run({"sleep", "600"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  ASSERT_TRUE(end.fault);
  EXPECT_EQ(end.fault->rank, 1);
  EXPECT_EQ(end.fault->step, 30);
  EXPECT_EQ(end.spoke, 2);
  EXPECT_EQ(end.first->who.host, "elsewhere");
}

// A process of this user that a heartbeat names: only one that was started as a rank is ended with the others.
TEST_F(WorldTest, AForgedHeartbeatEndsNoOtherProcess) {
  const auto start = [&](const char* variable) {
    const pid_t child = ::fork();
    if (child == 0) {
      char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("100"), nullptr};
      char* const environment[] = {const_cast<char*>(variable), nullptr};
      ::execve("/bin/sleep", words, environment);
      ::_exit(127);
    }
    const std::string environ_file = text("/proc/", child, "/environ");
    while (base::read_file(environ_file).find(variable) == std::string::npos) ::usleep(1000);  // it has its program
    return child;
  };
  const pid_t own[] = {start("LOCKSTEP_WORLD=world"), start("LOCKSTEP_WORLD=another")};
  const auto who = [](pid_t pid) {
    run::Holder holder = run::this_process();
    holder.pid = pid;
    holder.since.clear();
    const std::string stat = base::read_file(text("/proc/", pid, "/stat"));
    holder.pid_start = std::stoll(base::split(stat.substr(stat.rfind(')') + 2), ' ').at(19));
    return holder;
  };
  const auto ranks = ranks_that([&](run::Heartbeat& heartbeat) {
    heartbeat.who = who(own[heartbeat.rank]);
    if (heartbeat.rank == 1) heartbeat.end = run::RankEnd{.signal = SIGKILL};
  });
  EXPECT_TRUE(run({"sleep", "60"}).fault);
  EXPECT_EQ(::waitpid(own[0], nullptr, 0), own[0]);  // a rank whose launcher is gone
  EXPECT_EQ(::waitpid(own[1], nullptr, WNOHANG), 0);
  ::kill(own[1], SIGKILL);
  ::waitpid(own[1], nullptr, 0);
}

TEST_F(WorldTest, WordsOfAnotherWorldDoNotCount) {
  const auto ranks = ranks_that([](run::Heartbeat& heartbeat) {
    heartbeat.world = "the one before";
    heartbeat.end = run::RankEnd{.signal = SIGKILL};
  });
  const WorldEnd end = run({"sleep", "1"});
  EXPECT_FALSE(end.fault);
  EXPECT_EQ(end.spoke, 0);
}

TEST_F(WorldTest, ASilentRankIsNamed) {
  plan_.patience.hang = 5;  // 3 s of silence
  const auto ranks = ranks_that([](run::Heartbeat&) {});
  const WorldEnd end = run({"sleep", "60"});
  ASSERT_TRUE(end.fault);
  EXPECT_EQ(end.fault->kind, Fault::Kind::silent);
  EXPECT_EQ(end.fault->host, "elsewhere");
}

TEST_F(WorldTest, AWishToStopGoesToTheRanksOnce) {
  std::jthread user([this] {
    await("ready");
    ::kill(::getpid(), SIGTERM);
    await("got");
    ::kill(::getpid(), SIGTERM);
    base::write_file(file("asked twice"), "");
  });
  const WorldEnd end = run({"sh", "-c",
                            text("cd '", folder_.path().string(), "'; trap 'test -e got && exit 9; : > got' USR1; ",
                                 ": > ready; until test -e 'asked twice'; do sleep 0.01; done; ",
                                 "for i in 1 2 3 4 5; do sleep 0.1; done; exit 85")});
  EXPECT_EQ(end.code, 85);
  EXPECT_EQ(wish_.why, "SIGTERM");
}

TEST_F(WorldTest, AWishThatCameBeforeTheRanksReachesThemWhenTheySpeak) {
  std::jthread user([this] {
    await("ready");
    ::kill(::getpid(), SIGTERM);
    await("has ranks");
    ranks_that([](run::Heartbeat&) {}).join();
  });
  const WorldEnd end = run({"sh", "-c",
                            text("cd '", folder_.path().string(), "'; trap ': > lost' USR1; : > ready; ",
                                 "until test -e lost; do sleep 0.01; done; trap 'exit 85' USR1; : > 'has ranks'; ",
                                 "i=0; while [ $i -lt 600 ]; do i=$((i + 1)); sleep 0.05; done; exit 9")});
  EXPECT_FALSE(end.fault);
  EXPECT_EQ(end.code, 85);
}

TEST_F(WorldTest, ItsOwnLauncherServesAsWell) {
  plan_.launcher = Launcher::own;
  const WorldEnd end = run({"sh", "-c", "exit $LOCKSTEP_RANK"});
  EXPECT_EQ(end.fault->what, "sh ended with code 1 before any rank said a word");
  EXPECT_EQ(end.fault->kind, Fault::Kind::not_started);
  EXPECT_EQ(run({"sh", "-c", "exit $((3 * LOCKSTEP_RANK))"}).code, 3);
  std::jthread user([this] {
    for (const char* rank : {"0", "1"}) await(rank);
    ::kill(::getpid(), SIGTERM);
  });
  const std::string root = folder_.path().string();
  EXPECT_EQ(
      run({"sh", "-c", text("trap 'exit 85' USR1; : > '", root, "/'$LOCKSTEP_RANK; while :; do sleep 0.01; done")})
          .code,
      85);
}

TEST_F(WorldTest, ATermAtTheLauncherIsAWishToStop) {
  const WorldEnd end = run({"sh", "-c", "trap 'exit 85' USR1; kill -TERM $$; while :; do :; done"});
  EXPECT_EQ(end.code, 85);
  EXPECT_EQ(wish_.why, "SIGTERM");
}

TEST_F(WorldTest, ALostSessionIsAWishToStopToo) {
  std::vector<std::string> said;
  plan_.say = [&](const std::string& line) { said.push_back(line); };
  for (const char* at : {"$PPID", "$$"}) {  // at the supervisor, at its launcher
    wish_ = {};
    const WorldEnd end = run({"sh", "-c", text("trap 'exit 85' USR1; kill -HUP ", at, "; while :; do :; done")});
    EXPECT_EQ(end.code, 85) << at;
    EXPECT_EQ(wish_.why, "SIGHUP") << at;
    EXPECT_EQ(base::read_file(run::stop_path(plan_.run)), "SIGHUP") << at;
  }
  EXPECT_EQ(said.at(0), "SIGHUP: all ranks stop after their step, then save");
}

// mpirun writes for the ranks, and would end them after some writes that fail.
TEST_F(WorldTest, AReaderThatIsGoneIsAWishToStop) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  const WorldEnd end = run({"sh", "-c", "trap 'exit 85' USR1; while :; do :; done"});
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(ends[1]);
  EXPECT_EQ(end.code, 85);
  EXPECT_EQ(wish_.why, "SIGPIPE");
}

}  // namespace
}  // namespace lockstep::ranks
