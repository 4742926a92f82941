// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/buy.h"

#include <gtest/gtest.h>

namespace lockstep::advice {
namespace {

TEST(ListHoursTest, SpreadsJobsOverTheGpusLongestFirst) {
  const std::vector<JobTime> jobs{{.alone = 3}, {.alone = 5}, {.alone = 4}};
  EXPECT_DOUBLE_EQ(list_hours(jobs, 1), 12);
  EXPECT_DOUBLE_EQ(list_hours(jobs, 2), 7);
  EXPECT_DOUBLE_EQ(list_hours(jobs, 4), 5);
}

TEST(ListHoursTest, TakesAllGpusForEachJobWhereThatIsFaster) {
  const std::vector<JobTime> one{{.alone = 10, .together = 5.5}};
  EXPECT_DOUBLE_EQ(list_hours(one, 2), 5.5);
  const std::vector<JobTime> two{{.alone = 10, .together = 5.5}, {.alone = 10, .together = 5.5}};
  EXPECT_DOUBLE_EQ(list_hours(two, 2), 10);
}

TEST(ListHoursTest, LeavesOutWhatDoesNotFit) {
  const std::vector<JobTime> jobs{{.alone = 0}, {.alone = 2}};
  EXPECT_DOUBLE_EQ(list_hours(jobs, 2), 2);
}

}  // namespace
}  // namespace lockstep::advice
