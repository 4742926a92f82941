// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/sparkline.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::watching {
namespace {

TEST(SparklineTest, DrawsARiseFromTheLowestToTheHighestBar) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, Letters::unicode),
            "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, Letters::ascii), "_.:-=+*#");
}

TEST(SparklineTest, AveragesIntoAsManyColumnsAsThereAre) {
  EXPECT_EQ(sparkline({0, 2, 10, 12}, 2, Letters::ascii), "_#");
  EXPECT_EQ(sparkline({3, 4}, 80, Letters::ascii), "_#");
}

TEST(SparklineTest, LeavesOutWhatIsNotFiniteAndDrawsAConstantInTheMiddle) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(sparkline({none, 0, none, 1}, 10, Letters::ascii), "_#");
  EXPECT_EQ(sparkline({none, none}, 10, Letters::ascii), "");
  EXPECT_EQ(sparkline({5, 5, 5}, 3, Letters::ascii), "===");
  EXPECT_EQ(sparkline({1, 2}, 0, Letters::ascii), "");
}

TEST(SparklineTest, TheBarIsFullAtTheEndAndEmptyWhereNothingIsKnown) {
  EXPECT_EQ(progress_bar(0.5, 4, Letters::ascii), "##..");
  EXPECT_EQ(progress_bar(1, 4, Letters::ascii), "####");
  EXPECT_EQ(progress_bar(std::numeric_limits<double>::quiet_NaN(), 2, Letters::ascii), "..");
}

}  // namespace
}  // namespace lockstep::watching
