// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/class_rows.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::trust {
namespace {

TEST(ClassRowsTest, RowsOfRanksComeTogetherInTheOrderOfTheSamples) {
  ClassRows one, other, none;
  one.add(std::vector<float>{1, 2}, 0, 3, std::vector<float>{7});
  other.add(std::vector<float>{3, 4}, 1, 1, std::vector<float>{8});
  other.add(std::vector<float>{3, std::numeric_limits<float>::quiet_NaN()}, 1, 2);
  other.add(std::vector<float>{5, 6}, -1, 4);
  one.merge(other.pack());
  one.merge(none.pack());
  one.sort();
  EXPECT_EQ(one.ids, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(one.logits, (std::vector<float>{3, 4, 1, 2}));
  EXPECT_EQ(one.features, (std::vector<float>{8, 7}));
  EXPECT_EQ(one.nonfinite, 1);
  EXPECT_EQ(one.row(1)[0], 1);
  EXPECT_EQ(one.select(std::vector<int64_t>{1}).labels, std::vector<int64_t>{0});
}

TEST(ClassRowsTest, SaysTheLowerOfTwoEqualClasses) {
  ClassRows rows;
  rows.add(std::vector<float>{1000, 1000, 0}, 1, 0);
  const Answer answer = answers(rows).front();
  EXPECT_EQ(answer.said, 0);
  EXPECT_DOUBLE_EQ(answer.confidence, 0.5);
  EXPECT_FALSE(answer.right);
}

}  // namespace
}  // namespace lockstep::trust
