// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect_score.h"

#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

TEST(DetectScoreTest, FoundBoxesEndAtTheImage) {
  const std::vector<int64_t> ids{0};
  const std::vector<FieldValues> fields;
  const std::vector<float> boxes{-10, 5, 30, 70, 200, 0, 300, 64, 0, 0, 9, 9}, scores{0.9F, 0.8F, 0};
  const Rows rows{ids, fields, {{"boxes", 12, boxes}, {"scores", 3, scores}}};
  const auto found = found_boxes(rows, 0, {64, 128}, 256, 128);
  ASSERT_EQ(found.size(), 1U);  // the second lies beside the canvas, the third is none
  EXPECT_EQ(found[0].box, (image::Box{0, 10, 60, 128}));
}

TEST(DetectScoreTest, ARecordHasCornersAndSidesInHundredths) {
  DetectClasses classes;
  classes.told = "Car";
  classes.told_label = 3;
  const base::Json record = detect_record(100, 50, {{{1.234, 2, 11.239, 7}, 0.5}}, classes);
  const base::Json& object = record.at("objects").items()[0];
  EXPECT_EQ(object.at("box"), base::Json::array({1.23, 2.0, 10.01, 5.0}));
  EXPECT_EQ(object.at("label").as_int(), 3);
  EXPECT_EQ(record.at("width").as_int(), 100);
}

}  // namespace
}  // namespace lockstep::task
