// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <string>

namespace lockstep::sources {
namespace {

TEST(OrderedWorkTest, GivesEveryResultOnceAndInOrder) {
  for (const int64_t threads : {1, 2, 7}) {
    std::vector<int64_t> taken;
    std::atomic<int64_t> in_flight = 0, most = 0;
    work_in_order<int64_t>(
        500, {threads, 10},
        [&](int64_t i) {
          most = std::max<int64_t>(most, ++in_flight);
          if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return i * i;
        },
        [&](int64_t i, int64_t&& square) {
          EXPECT_EQ(square, i * i);
          taken.push_back(i);
          --in_flight;
        });
    ASSERT_EQ(taken.size(), 500u);
    for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], i);
    EXPECT_LE(most, 11);
  }
}

TEST(OrderedWorkTest, PassesOnWhatIsThrown) {
  for (const int64_t threads : {1, 3}) {
    EXPECT_THROW(work_in_order<int>(
                     100, {threads, 8}, [](int64_t i) { return i == 40 ? throw std::string("made") : 1; },
                     [](int64_t, int&&) {}),
                 std::string);
    int64_t last = -1;
    EXPECT_THROW(work_in_order<int>(
                     100, {threads, 8}, [](int64_t) { return 1; },
                     [&](int64_t i, int&&) {
                       last = i;
                       if (i == 30) throw std::string("taken");
                     }),
                 std::string);
    EXPECT_EQ(last, 30);
  }
}

TEST(OrderedWorkTest, OfSeveralExceptionsTheEarliestItemsIsThrown) {
  std::latch both(2);
  const auto make = [&](int64_t i) -> int {
    if (i > 1) return 1;
    both.arrive_and_wait();  // both are begun
    if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    throw std::to_string(i);
  };
  try {
    work_in_order<int>(100, {4, 8}, make, [](int64_t, int&&) {});
    FAIL() << "nothing was thrown";
  } catch (const std::string& item) {
    EXPECT_EQ(item, "0");
  }
}

TEST(OrderedWorkTest, DoesNothingForNothing) {
  work_in_order<int>(
      0, {4, 8}, [](int64_t) { return 1; }, [](int64_t, int&&) { FAIL(); });
}

}  // namespace
}  // namespace lockstep::sources
