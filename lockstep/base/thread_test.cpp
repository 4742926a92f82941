// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <thread>

namespace lockstep::base {
namespace {

bool is_blocked(int signal) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(ThreadTest, OnlyTheThreadThatAsksLeavesSignalsToOthers) {
  bool term = false, user = false, fault = false;
  std::thread([&] {
    leave_signals_to_others();
    term = is_blocked(SIGTERM);
    user = is_blocked(SIGUSR1);
    fault = is_blocked(SIGBUS);
  }).join();
  EXPECT_TRUE(term && user);
  EXPECT_FALSE(fault);
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace lockstep::base
