// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/coroutine.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::base {
namespace {

// Holds a coroutine until somebody opens it.
struct Gate {
  std::vector<std::coroutine_handle<>> waiting;

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) { waiting.push_back(handle); }
  void await_resume() {}
  void open() {
    for (const auto handle : std::exchange(waiting, {})) handle.resume();
  }
};

Coroutine<int> plus_one(Gate& gate, int value) {
  co_await gate;
  co_return value + 1;
}

Coroutine<int> sum_of(Gate& gate, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await plus_one(gate, i);
  co_return sum;
}

Coroutine<std::string> broken() {
  throw std::runtime_error("broken");
  co_return "";
}

Coroutine<int> deep(int depth) {
  if (depth == 0) co_return 0;
  const int below = co_await deep(depth - 1);
  co_return below + 1;
}

Detached into(Coroutine<int> task, int& result) {
  result = co_await task;
}

Detached catching(std::string& message) {
  try {
    (void)co_await broken();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
}

TEST(TaskTest, GoesOnWhenWhatItAwaitsIsThere) {
  Gate gate;
  int result = -1;
  into(sum_of(gate, 3), result);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(result, -1);
    gate.open();
  }
  EXPECT_EQ(result, 6);
}

TEST(TaskTest, GivesAnExceptionToTheOneThatAwaits) {
  std::string message;
  catching(message);
  EXPECT_EQ(message, "broken");
}

TEST(TaskTest, ManyAtOnceDoNotDisturbEachOther) {
  Gate gate;
  std::vector<int> results(100, -1);
  for (int i = 0; i < 100; ++i) into(plus_one(gate, i), results[static_cast<size_t>(i)]);
  gate.open();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(results[static_cast<size_t>(i)], i + 1);
}

TEST(TaskTest, AwaitsThroughManyLevels) {
  int result = -1;
  into(deep(1000), result);
  EXPECT_EQ(result, 1000);
}

}  // namespace
}  // namespace lockstep::base
