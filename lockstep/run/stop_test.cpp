// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/stop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

TEST(StopSignalsTest, RemembersTheFirstSignal) {
  const StopSignals stop;
  EXPECT_EQ(stop.received(), 0);
  EXPECT_EQ(stop.name(), "");
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  EXPECT_EQ(stop.received(), SIGUSR1);
  EXPECT_EQ(stop.name(), "SIGUSR1");
}

TEST(StopSignalsTest, StartsCleanEachTime) {
  {
    const StopSignals stop;
    std::raise(SIGTERM);
    EXPECT_EQ(stop.name(), "SIGTERM");
  }
  const StopSignals stop;
  EXPECT_EQ(stop.received(), 0);
}

TEST(StopSignalsTest, PutsTheOldHandlersBack) {
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  { const StopSignals stop; }
  struct sigaction after {};
  ::sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(StopSignalsTest, SecondCtrlCEndsTheProcessAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StopSignals stop;
    std::raise(SIGINT);
    std::raise(SIGINT);
    ::_exit(0);  // not reached
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
}

TEST(StopSignalsTest, TwoAtOnceAreABug) {
  const StopSignals stop;
  EXPECT_THROW(StopSignals(), base::Error);
}

}  // namespace
}  // namespace lockstep::run
