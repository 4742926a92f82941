// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/lane_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep::step {
namespace {

TEST(LaneThreadsTest, EveryLaneWorksOnceARoundOnItsOwnThread) {
  LaneThreads lanes(3, 1);
  std::vector<std::thread::id> first(3), second(3);
  lanes.run([&](int64_t lane) { first[static_cast<size_t>(lane)] = std::this_thread::get_id(); });
  lanes.run([&](int64_t lane) { second[static_cast<size_t>(lane)] = std::this_thread::get_id(); });
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_NE(first[1], first[2]);
  EXPECT_EQ(first, second);
}

TEST(LaneThreadsTest, TheFirstRoundGoesLaneByLaneAndTheOthersAtOnce) {
  LaneThreads lanes(3, 1);
  std::atomic<int> inside = 0, most = 0;
  lanes.run([&](int64_t) {
    most = std::max<int>(most, ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time for another to come in, if it could
    --inside;
  });
  EXPECT_EQ(most, 1);
  std::barrier together(3);
  lanes.run([&](int64_t) { together.arrive_and_wait(); });
}

TEST(LaneThreadsTest, LanesComputeWithTheThreadsTheyWereGiven) {
  const int before = at::get_num_threads();
  LaneThreads lanes(2, 3);
  std::atomic<int> seen = 0;
  lanes.run([&](int64_t lane) {
    if (lane == 1) seen = at::get_num_threads();
  });
  at::set_num_threads(before);
  EXPECT_EQ(seen, 3);
}

TEST(LaneThreadsTest, AnErrorComesOutWhenAllAreDone) {
  LaneThreads lanes(2, 1);
  std::atomic<int> done = 0;
  EXPECT_THROW(lanes.run([&](int64_t lane) {
    if (lane == 1) throw std::runtime_error("no");
    ++done;
  }),
               std::runtime_error);
  EXPECT_EQ(done, 1);
  lanes.run([&](int64_t) { ++done; });
  EXPECT_EQ(done, 3);
}

}  // namespace
}  // namespace lockstep::step
