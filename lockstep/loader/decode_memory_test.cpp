// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/decode_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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

}  // namespace
}  // namespace lockstep::loader
