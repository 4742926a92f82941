// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/statistics.h"

#include <gtest/gtest.h>

namespace lockstep::verbs {
namespace {

data::FinishedSample sample(int64_t width, int64_t height) {
  data::FinishedSample one;
  one.members = {{"jpg", "12345"}, {"json", "{}"}};
  one.bytes_in = 9;
  one.width = width;
  one.height = height;
  one.was_turned = width > 50;
  one.pixels = {width * height, {1, 2, 3}, {1, 4, 9}};
  return one;
}

TEST(StatisticsTest, TheSumOverShardsIsThatOverTheSamples) {
  Statistics all, first, second;
  for (int64_t i = 0; i < 6; ++i) {
    all.add(sample(20 + 10 * i, 30), static_cast<int32_t>(i % 4));
    (i < 2 ? first : second).add(sample(20 + 10 * i, 30), static_cast<int32_t>(i % 4));
  }
  Statistics sum;
  sum.add(second);
  sum.add(first);
  EXPECT_EQ(sum, all);
  EXPECT_EQ(all.per_class, (std::vector<int64_t>{2, 2, 1, 1}));
  EXPECT_EQ(all.min_width, 20);
  EXPECT_EQ(all.max_width, 70);
  EXPECT_EQ(all.bytes_out, 42);
  EXPECT_EQ(all.num_turned, 2);
  EXPECT_EQ(all.for_people().at("width_mean").as_double(), 45);
}

TEST(StatisticsTest, AShardsReportComesBackFromItsFile) {
  ShardReport report{{"shard-000003", 5, 10240, 0xFFFFFFFFu}, {}, {{"a/b.jpg", "the file is empty"}}};
  report.statistics.add(sample(10, 12), 3);
  const base::Json file = base::parse_json(report.to_json().dump(), "x");
  EXPECT_EQ(ShardReport::from_json(file), report);
}

}  // namespace
}  // namespace lockstep::verbs
