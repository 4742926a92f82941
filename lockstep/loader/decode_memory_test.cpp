// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/decode_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

TEST(DecodeMemoryTest, RefusesWhatNeverFitsInWords) {
  DecodeMemory memory(int64_t{20} << 20);
  try {
    const DecodeMemory::Held held(memory, int64_t{847} << 20);
    FAIL() << "must be refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);  // data.on_bad_sample decides
    EXPECT_THAT(error.what(), testing::HasSubstr("decoding it takes 888"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("raise data.memory by 828 MiB"));
  }
  EXPECT_NO_THROW(DecodeMemory::Held(memory, int64_t{20} << 20));
}

TEST(DecodeMemoryTest, NeverGivesOutMoreThanThereIs) {
  constexpr int64_t kRoom = 100;
  DecodeMemory memory(kRoom);
  std::atomic<int64_t> used{0}, most{0};
  {
    std::vector<std::jthread> threads;
    for (int64_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int64_t i = 0; i < 200; ++i) {
          const int64_t bytes = (thread + 1) * 20 + i % 20;
          const DecodeMemory::Held held(memory, bytes);
          const int64_t now = used += bytes;
          for (int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
          used -= bytes;
        }
      });
    }
  }
  EXPECT_LE(most, kRoom);
  EXPECT_EQ(used, 0);
}

// Three threads take small images without a pause; one that needs all the room has its turn nevertheless.
TEST(DecodeMemoryTest, SmallImagesDoNotKeepALargeOneOut) {
  DecodeMemory memory(3);
  std::atomic<bool> is_served{false};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (!is_served) {
        const DecodeMemory::Held held(memory, 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  threads.emplace_back([&] {
    const DecodeMemory::Held held(memory, 3);
    is_served = true;
  });
  threads.clear();  // joins: never, if it were kept out
  EXPECT_TRUE(is_served);
}

}  // namespace
}  // namespace lockstep::loader
