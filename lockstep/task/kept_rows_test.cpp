// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/kept_rows.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::task
