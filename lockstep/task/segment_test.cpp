// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

using testing::ElementsAre;

spec::Job segments() {
  spec::Job job;
  job.task = spec::Task::segment;
  job.segment.classes = {"background", "cat"};
  job.data.image_size = 2;
  return job;
}

TEST(SegmentTest, ARecordHasTheRegionsOfTheImageInItsOwnPixels) {
  const auto task = make_segment(segments());
  const std::vector<int64_t> ids{0};
  const std::vector<FieldValues> fields;
  // [classes, height, width]: the upper right pixel is a cat.
  const std::vector<float> logs{std::log(0.9F), std::log(0.2F), std::log(0.9F), std::log(0.9F),
                                std::log(0.1F), std::log(0.8F), std::log(0.1F), std::log(0.1F)};
  const std::vector<std::string> annotations{R"({"width": 4, "height": 2})"};
  const base::Json record = task->record({ids, fields, {{"log_probabilities", 8, logs}}, annotations}, 0, 0);
  const auto& regions = record.at("regions").items();
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].at("class").as_string(), "background");
  EXPECT_EQ(regions[1].at("share").as_double(), 0.25);
  EXPECT_NEAR(regions[1].at("confidence").as_double(), 0.8, 1e-6);
  EXPECT_EQ(task->line(record), "background 75.0 %, cat 25.0 %");
  image::Image image(80, 40);
  EXPECT_TRUE(task->draw(record, image));
  const uint8_t* cat = image.row(15) + 3 * 70;
  EXPECT_GT(cat[0] + cat[1] + cat[2], 0);
  const uint8_t* background = image.row(39);
  EXPECT_EQ(background[0] + background[1] + background[2], 0);
}

TEST(SegmentTest, NamesAreTheJobsOrTheDatasWithABackgroundBehindObjects) {
  spec::Segment segment;
  EXPECT_THAT(segment_names(segment, {"sky", "road"}), ElementsAre("sky", "road"));
  segment.pixels = spec::LabelPixels::objects;
  EXPECT_THAT(segment_names(segment, {"cat"}), ElementsAre("background", "cat"));
  EXPECT_THAT(segment_names(segment, {}), ElementsAre());
  segment.classes = {"a", "b"};
  EXPECT_THAT(segment_names(segment, {"cat"}), ElementsAre("a", "b"));
  spec::Job job = segments();
  EXPECT_EQ(make_segment(job)->classes(), Classes::none);
  job.segment.classes.clear();
  EXPECT_EQ(make_segment(job)->classes(), Classes::of_objects);
  EXPECT_EQ(make_segment(job)->num_outputs(), 0);
}

}  // namespace
}  // namespace lockstep::task
