// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/statistics.h"

#include <gtest/gtest.h>

#include "lockstep/sources/npy.h"

namespace lockstep::sources {
namespace {

FinishedSample sample(int64_t width, int64_t height) {
  FinishedSample one;
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
    const ObjectCounts objects{.per_class = std::vector<int64_t>(static_cast<size_t>(i % 3), 1), .single = i % 3};
    all.add(sample(20 + 10 * i, 30), static_cast<int32_t>(i % 4), objects);
    (i < 2 ? first : second).add(sample(20 + 10 * i, 30), static_cast<int32_t>(i % 4), objects);
  }
  Statistics sum;
  sum.add(second);
  sum.add(first);
  EXPECT_EQ(sum, all);
  EXPECT_EQ(all.per_class, (std::vector<int64_t>{2, 2, 1, 1}));
  EXPECT_EQ(all.objects_per_class, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(all.most_objects, 2);
  EXPECT_EQ(all.min_width, 20);
  EXPECT_EQ(all.max_width, 70);
  EXPECT_EQ(all.bytes_out, 42);
  EXPECT_EQ(all.num_turned, 2);
  EXPECT_EQ(all.for_people().at("width_mean").as_double(), 45);
}

TEST(StatisticsTest, TellsWhatASampleWithoutAnImageHolds) {
  Statistics all, later;
  all.add(sample(20, 30), 0);
  EXPECT_FALSE(all.for_people().contains("without_image"));
  const std::vector<int64_t> shape{3, 4, 5};
  FinishedSample array;
  array.members = {{"npy", npy_file("u1", shape, std::string(60, 'x'))}};
  all.add(array, 0);
  FinishedSample foreign;
  foreign.members = {{"npy", "a pickle"}};
  later.add(foreign, 0);
  EXPECT_EQ(later.without_image, ".npy");
  all.add(later);
  EXPECT_EQ(Statistics::from_json(all.to_json()), all);
  EXPECT_EQ(all.for_people().at("without_image").as_int(), 2);
  EXPECT_EQ(all.for_people().at("first_without_image").as_string(), "array 3x4x5 of u1");
}

TEST(StatisticsTest, CountsTheObjectsOfASampleByTheirClass) {
  const auto counts = [](const std::string& json) {
    FinishedSample one;
    one.members = {{"jpg", "x"}, {"json", json}};
    return count_objects(one, 4).per_class;
  };
  EXPECT_EQ(counts(R"({"objects": [{"label": 2}, {"label": 0}, {"label": 2, "bbox": [1, 2, 3, 4]}]})"),
            (std::vector<int64_t>{1, 0, 2}));
  for (const char* foreign : {"{}", R"({"objects": 7})", R"({"objects": [7, {}, {"label": "cat"}, {"label": 1e9},
      {"label": 4}, {"label": -1}]})",
                              R"({"objects": [NaN]})", R"(["objects"])"}) {
    EXPECT_EQ(counts(foreign), std::vector<int64_t>()) << foreign;
  }
  EXPECT_EQ(count_objects({}, 4), ObjectCounts());
}

TEST(StatisticsTest, CountsCrowdsApartAndOutlinesThatWereLeftOut) {
  FinishedSample one;
  one.members = {{"jpg", "x"},
                 {"json", R"({"file_name": "a.jpg", "objects": [{"label": 0, "iscrowd": 1}, {"label": 0, "iscrowd": 0},
      {"label": 1, "segmentation_left_out": "two corners"}, {"label": 1, "segmentation_left_out": "other"}]})"}};
  const ObjectCounts counts = count_objects(one, 4);
  EXPECT_EQ(counts, (ObjectCounts{{2, 2}, 3, 2, "a.jpg: two corners"}));
  Statistics all;
  all.add(one, -1, counts);
  EXPECT_EQ(Statistics::from_json(all.to_json()), all);
  EXPECT_EQ(all.for_people().at("most_objects").as_int(), 3);
  EXPECT_EQ(all.for_people().at("first_bad_outline").as_string(), "a.jpg: two corners");
}

TEST(StatisticsTest, AShardsReportComesBackFromItsFile) {
  ShardReport report{{"shard-000003", 5, 10240, 0xFFFFFFFFu}, {}, {{"a/b.jpg", "the file is empty"}}};
  report.statistics.add(sample(10, 12), 3, {.per_class = {0, 5}, .single = 5});
  const base::Json file = base::parse_json(report.to_json().dump(), "x");
  EXPECT_EQ(ShardReport::from_json(file), report);
}

}  // namespace
}  // namespace lockstep::sources
