// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace lockstep::base {
namespace {

TEST(ClockTest, ASleepTakesTimeAndNoProcessor) {
  const double start = steady_seconds(), busy = thread_processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(steady_seconds() - start, 0.02);
  EXPECT_LT(thread_processor_seconds() - busy, 0.02);
}

TEST(ClockTest, WorkOfAnotherThreadIsTheProcesssNotThisThreads) {
  const double process = process_processor_seconds(), own = thread_processor_seconds();
  double worked = 0;
  std::thread worker([&] {
    while (thread_processor_seconds() < 0.03) worked += 1;
  });
  worker.join();
  EXPECT_GE(process_processor_seconds() - process, 0.03) << worked;
  EXPECT_LT(thread_processor_seconds() - own, 0.03);
}

// time() reads a coarser clock, which may be a tick behind.
TEST(ClockTest, UnixSecondsAreThoseOfTheSystem) {
  const auto before = static_cast<double>(std::time(nullptr));
  EXPECT_GE(unix_seconds(), before);
  EXPECT_LE(unix_seconds(), static_cast<double>(std::time(nullptr)) + 2);
}

}  // namespace
}  // namespace lockstep::base
