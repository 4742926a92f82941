// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/stop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

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

// A lost session, a reader that is gone, a used-up processor time: each would end the process unsaved.
TEST(StopSignalsTest, HearsWhatWouldOtherwiseEndTheProcess) {
  for (const int signal : {SIGHUP, SIGXCPU, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
    const StopSignals stop;
    std::raise(signal);
    EXPECT_EQ(stop.received(), signal);
    EXPECT_EQ(stop.name(), std::string("SIG") + sigabbrev_np(signal));
  }
}

TEST(StopSignalsTest, LeavesAnIgnoredHangupAlone) {  // nohup
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignals stop;
    std::raise(SIGHUP);
    EXPECT_EQ(stop.received(), 0);
  }
  std::signal(SIGHUP, SIG_DFL);
}

// What `work` writes to standard error, in a process of its own.
std::string said_by(void (*work)()) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    work();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST(StopSignalsTest, AcknowledgesAtOnce) {
  const std::string said = said_by([] {
    const StopSignals stop(Acknowledge::on_stderr);
    std::raise(SIGINT);
    std::raise(SIGTERM);  // the first one was answered
    std::raise(SIGINT);
  });
  EXPECT_EQ(said,
            "Ctrl-C: stopping after this step, then saving; Ctrl-C again ends it at once, unsaved\n"
            "second Ctrl-C: ended at once; the steps since the newest checkpoint are lost\n");
  EXPECT_EQ(said_by([] {
              const StopSignals stop;
              std::raise(SIGTERM);
            }),
            "");
}

TEST(StopSignalsTest, LastWordsToNobodyDoNotEndTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    ::close(ends[0]);
    { const StopSignals stop; }
    static_cast<void>(!::write(ends[1], "x", 1));
    ::_exit(85);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 85);
}

TEST(StopSignalsTest, TwoAtOnceAreABug) {
  const StopSignals stop;
  EXPECT_THROW(StopSignals(), base::Error);
}

}  // namespace
}  // namespace lockstep::run
