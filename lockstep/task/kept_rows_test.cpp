// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/kept_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

struct Found {
  int64_t id = 0;
  double score = 0;

  bool operator==(const Found&) const = default;
};

TEST(KeptRowsTest, RanksThatAreMergedGiveTheRowsOfOne) {
  KeptRows<Found> one, first, second;
  for (const Found& row : {Found{0, .5}, Found{1, .25}, Found{1, .75}, Found{2, 1}}) one.add(row);
  first.add({1, .25});
  first.add({1, .75});
  second.add({2, 1});
  second.add({0, .5});
  first.merge(second.pack());
  first.merge(KeptRows<Found>().pack());
  EXPECT_EQ(first.size(), 4);
  EXPECT_EQ(first.in_order(), one.in_order());
  EXPECT_EQ(first.in_order().front(), (Found{0, .5}));
}

TEST(KeptRowsTest, ARankWithoutSamplesAddsNothing) {
  KeptRows<Found> none;
  none.merge(KeptRows<Found>().pack());
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.in_order().empty());
}

TEST(KeptRowsTest, TakesWholeRowsOnly) {
  KeptRows<Found> rows;
  EXPECT_THROW(rows.merge("not a row"), base::Error);
  EXPECT_EQ(rows.size(), 0);
}

TEST(WorstRecordsTest, KeepsTheLowestMarksWhateverRanksAddedThem) {
  WorstRecords whole(2), first(2), second(2);
  const auto add = [](WorstRecords& to, double mark, int64_t id) {
    if (to.takes(mark, id)) to.add(mark, id, base::Json(id));
  };
  for (const auto& [mark, id] : {std::pair<double, int64_t>{.5, 7}, {.25, 9}, {.5, 3}, {.75, 1}}) {
    add(whole, mark, id);
    add(id > 5 ? first : second, mark, id);
  }
  second.merge(first.pack());
  second.merge(WorstRecords(2).pack());
  EXPECT_EQ(second.worst_first(), whole.worst_first());
  ASSERT_EQ(whole.worst_first().size(), 2U);
  EXPECT_EQ(whole.worst_first().begin()->first, (WorstRecords::Key{.25, 9}));
  EXPECT_EQ(whole.worst_first().rbegin()->first, (WorstRecords::Key{.5, 3}));  // of equal ones the first sample
  EXPECT_FALSE(whole.takes(.5, 4));
}

TEST(WorstRecordsTest, TakesARecordOfMoreThanAMegabyteAndNoneWhereNoneIsKept) {
  WorstRecords one(1), other(1), none(0);
  one.add(-INFINITY, 1, base::Json(std::string(size_t{3} << 20, 'x')));
  other.merge(one.pack());
  EXPECT_EQ(other.worst_first(), one.worst_first());
  EXPECT_FALSE(none.takes(0, 1));
  none.merge(one.pack());
  EXPECT_TRUE(none.worst_first().empty());
}

TEST(JoinPartsTest, GivesThePartsBackInOrder) {
  const std::string all = join_parts({"first", "", std::string("\0b", 2)});
  std::string_view packed = all;
  EXPECT_EQ(next_part(packed), "first");
  EXPECT_EQ(next_part(packed), "");
  EXPECT_EQ(next_part(packed), std::string_view("\0b", 2));
  EXPECT_TRUE(packed.empty());
  packed = std::string_view(all).substr(0, 10);
  EXPECT_THROW(next_part(packed), base::Error);
}

}  // namespace
}  // namespace lockstep::task
