// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/window_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "lockstep/loader/collection.h"
#include "lockstep/loader/fake_store.h"

namespace lockstep::loader {
namespace {

std::vector<int64_t> epoch_of(Sequence& sequence, int64_t epoch, int64_t size, int64_t batch) {
  std::vector<int64_t> ids;
  for (int64_t begin = 0; begin < size; begin += batch) {
    const auto part = sequence.batch(epoch, {begin, std::min(begin + batch, size)});
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

TEST(WindowOrderTest, IsABijectionForEverySizeAndWindow) {
  for (const int64_t size : {1, 2, 49, 50, 51, 130, 1000}) {
    const Extents extents(FakeStore(), size, 4096);
    for (const int64_t window : {1, 3, 16, 1000}) {
      Sequence sequence(Sequence::Kind::windows, size, 1, &extents, window);
      auto ids = epoch_of(sequence, 0, size, 9);
      std::sort(ids.begin(), ids.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(ids[static_cast<size_t>(i)], i) << size << " " << window;
    }
  }
}

TEST(WindowOrderTest, IsFixedBySeedAndEpochOnly) {
  const Extents extents(FakeStore(), 1000, 4096);
  Sequence one(Sequence::Kind::windows, 1000, 1, &extents, 16), same(Sequence::Kind::windows, 1000, 1, &extents, 16);
  Sequence other(Sequence::Kind::windows, 1000, 2, &extents, 16);
  const auto first = epoch_of(one, 0, 1000, 10);
  EXPECT_EQ(first, epoch_of(same, 0, 1000, 10));
  EXPECT_NE(first, epoch_of(same, 1, 1000, 10));
  EXPECT_EQ(first, epoch_of(same, 0, 1000, 10)) << "back to an earlier epoch";
  EXPECT_NE(first, epoch_of(other, 0, 1000, 10));
}

// A drift here would silently change what every resumed run sees next.
TEST(WindowOrderTest, NeverChangesBetweenVersions) {
  const Extents extents(FakeStore(), 1000, 4096);
  const WindowOrder order(extents, 16, 1, 2);
  EXPECT_EQ(order(0), (WindowOrder::Position{10, 168}));
  EXPECT_EQ(order(999), (WindowOrder::Position{256, 614}));
}

TEST(WindowOrderTest, ABatchTouchesOneWindowOrTwo) {
  const Extents extents(FakeStore(), 1000, 4096);
  Sequence sequence(Sequence::Kind::windows, 1000, 1, &extents, 16);
  for (int64_t begin = 0; begin < 1000; begin += 20) {
    std::set<int64_t> touched;
    for (const int64_t id : sequence.batch(3, {begin, begin + 20})) touched.insert(extents.of(id));
    EXPECT_LE(touched.size(), 20u);
  }
}

// Four ranks read about a half of the extents each, for chance moves the edges of their shares from batch to batch;
// without the sorting each would read all of them.
TEST(WindowOrderTest, ARanksShareOfEveryBatchLiesInItsShareOfTheExtents) {
  const int64_t size = 10000, batch = 200, ranks = 4;
  const Extents extents(FakeStore(), size, 20480);
  Sequence sequence(Sequence::Kind::windows, size, 1, &extents, 32);
  std::vector<std::set<int64_t>> touched(ranks);
  for (int64_t begin = 0; begin < size; begin += batch) {
    const auto ids = sequence.batch(0, {begin, begin + batch});
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const run::Range mine = run::rank_range({0, batch}, rank, ranks);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        touched[static_cast<size_t>(rank)].insert(extents.of(ids[static_cast<size_t>(i)]));
      }
    }
  }
  size_t sum = 0;
  for (const auto& mine : touched) sum += mine.size();
  EXPECT_LT(sum, 9 * extents.all().size() / 4) << "of " << extents.all().size();
}

TEST(SequenceTest, BalancedDrawsEveryClassAlike) {
  const Collection collection{.root = "", .classes = {"a", "b"}, .samples = {{"", 0}, {"", 0}, {"", 0}, {"", 1}}};
  Sequence sequence(balanced_order(collection, 1, 5));
  const auto ids = sequence.batch(0, {0, 4});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 3), 2);
}

TEST(SequenceTest, FullIsTheOrderAndInOrderIsNone) {
  Sequence full(Sequence::Kind::full, 100, 5), none(Sequence::Kind::in_order, 100, 5);
  const run::Order order(100, 5, 7);
  EXPECT_EQ(full.batch(7, {10, 13}), (std::vector<int64_t>{order(10), order(11), order(12)}));
  EXPECT_EQ(none.batch(7, {10, 13}), (std::vector<int64_t>{10, 11, 12}));
}

}  // namespace
}  // namespace lockstep::loader
