// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/own_launcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/ranks/launch.h"
#include "lockstep/run/folder.h"

namespace lockstep::ranks {
namespace {

// Ranks are shell scripts here: how they start and end is the launcher's business, what they compute is not.
class OwnLauncherTest : public ::testing::Test {
 protected:
  pid_t start(const std::string& script, int64_t ranks = 3) {
    return start_launcher(Launcher::own, {"sh", "-c", "cd '" + folder_.path().string() + "' && " + script}, ranks);
  }
  static int code_of(pid_t launcher) {
    int status = 0;
    waitpid(launcher, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool appears(const std::string& name) const {
    for (int i = 0; i < 6000; ++i) {
      if (std::filesystem::exists(folder_.path() / name)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  std::string read(const std::string& name) const { return base::read_file(folder_.path() / name); }

  base::TemporaryFolder folder_;
};

TEST_F(OwnLauncherTest, TellsEachRankItsNumberAndWhereTheyMeet) {
  const int code = code_of(start("stat -c \"$LOCKSTEP_SIZE %a %n\" \"$LOCKSTEP_RENDEZVOUS\" > $LOCKSTEP_RANK"));
  EXPECT_EQ(code, 0);
  const std::string first = read("0");
  EXPECT_EQ(first.substr(0, 6), "3 700 ");
  EXPECT_EQ(read("1"), first);
  EXPECT_EQ(read("2"), first);
  EXPECT_FALSE(std::filesystem::exists(base::split(first.substr(6), '\n')[0]));  // gone with them
}

TEST_F(OwnLauncherTest, ARankThatFailsEndsTheOthersAndItsCodeCounts) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of(start("test $LOCKSTEP_RANK = 1 && exit 3; trap '' TERM; exec sleep 600")), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(code_of(start("test $LOCKSTEP_RANK = 2 && kill -9 $$; exec sleep 60")), 128 + SIGKILL);
}

TEST_F(OwnLauncherTest, AWishToStopReachesEveryRank) {
  const std::string script = "trap 'exit 85' USR1; : > $LOCKSTEP_RANK; while :; do sleep 0.01; done";
  for (const int signal : {SIGUSR1, SIGTERM}) {
    const pid_t launcher = start(script);
    for (const char* rank : {"0", "1", "2"}) EXPECT_TRUE(appears(rank));
    kill(launcher, signal);
    EXPECT_EQ(code_of(launcher), 85);
    for (const char* rank : {"0", "1", "2"}) std::filesystem::remove(folder_.path() / rank);
  }
}

TEST_F(OwnLauncherTest, AnInterruptEndsThemAll) {
  const pid_t launcher = start(": > $LOCKSTEP_RANK; exec sleep 60");
  for (const char* rank : {"0", "1", "2"}) EXPECT_TRUE(appears(rank));
  kill(launcher, SIGINT);
  EXPECT_EQ(code_of(launcher), 128 + SIGINT);
}

// The supervisor holds a folder by a thread that a forked process does not have: unwinding there would wait for it.
TEST_F(OwnLauncherTest, AFailureEndsTheForkedProcessAloneAndIsTold) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::testing::internal::CaptureStderr();
  ::setenv("TMPDIR", "/no/such/folder", 1);
  const run::RunFolder held(folder_.path() / "held");
  const pid_t launcher = start("true");
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 6000 && ended == 0; ++i) {
    ended = waitpid(launcher, &status, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (ended == 0) kill(launcher, SIGKILL);
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(ended, launcher);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  EXPECT_NE(told.find("TMPDIR=/no/such/folder is no folder"), std::string::npos) << told;
  EXPECT_NO_THROW(held.ensure_held());
}

TEST_F(OwnLauncherTest, AProgramThatIsNotThereIsToldByItsCode) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(code_of(start_launcher(Launcher::own, {(folder.path() / "absent").string()}, 2)), 127);
}

}  // namespace
}  // namespace lockstep::ranks
