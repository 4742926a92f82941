// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/file_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "lockstep/base/random.h"

namespace lockstep::loader {
namespace {

TEST(FileMemoryTest, RoomIsAtMostAQuarterMore) {
  for (int64_t size = 0; size < 5000; ++size) {
    EXPECT_GE(FileMemory::room_of(size), size);
    EXPECT_LE(FileMemory::room_of(size), size + size / 4 + 1) << size;
    EXPECT_EQ(FileMemory::room_of(FileMemory::room_of(size)), FileMemory::room_of(size));
  }
  EXPECT_EQ(FileMemory::room_of(int64_t{5} << 40), int64_t{5} << 40);
}

TEST(FileMemoryTest, WhatOneLeavesTheNextOfItsSizeTakes) {
  FileMemory files(1 << 20);
  files.reserve(60000);
  auto first = files.find(60000);
  const std::byte* const where = first.data();
  files.give_back(std::move(first));
  files.reserve(58000);
  const auto second = files.find(58000);
  EXPECT_EQ(second.data(), where);
  EXPECT_EQ(second.size(), 58000U);
}

TEST(FileMemoryTest, ASingleFileMayBeLargerThanTheBudget) {
  FileMemory files(10);
  EXPECT_TRUE(files.has_room(1000));
  files.reserve(1000);
  EXPECT_FALSE(files.has_room(1));
  files.give_back(files.find(1000));
  EXPECT_EQ(files.bytes(), 0);  // not kept
}

TEST(FileMemoryTest, SparePiecesNeverKeepTheBudgetFromBeingHeld) {
  constexpr int64_t kBudget = 400000;
  FileMemory files(kBudget);
  base::Random random(7);
  std::deque<std::vector<std::byte>> lent;
  int64_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    const int64_t size = random.below(100000);
    for (; !files.has_room(size); lent.pop_front()) files.give_back(std::move(lent.front()));
    files.reserve(size);
    lent.push_back(files.find(size));
    EXPECT_EQ(static_cast<int64_t>(lent.back().size()), size);
    most = std::max(most, files.bytes());
  }
  EXPECT_LE(most, kBudget);
  EXPECT_GT(most, kBudget * 3 / 4);
}

}  // namespace
}  // namespace lockstep::loader
