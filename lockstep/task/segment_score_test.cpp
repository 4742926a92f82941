// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

// 3 labels, 4 pixels. tests/oracles/segment.py compares larger ones with torchmetrics.
struct Batch {
  std::vector<int64_t> ids;
  std::vector<FieldValues> fields;
  std::vector<float> logs;

  void add(int64_t id, const std::vector<uint8_t>& labels, const std::vector<int>& answers) {
    if (fields.empty()) fields.push_back({{.name = "labels", .element = Element::uint8, .shape = {2, 2}}});
    ids.push_back(id);
    for (const uint8_t label : labels) fields[0].bytes.push_back(std::byte{label});
    for (int label = 0; label < 3; ++label) {
      for (const int answer : answers) logs.push_back(std::log(answer == label ? 0.8F : 0.1F));
    }
  }
  Rows rows() const { return {ids, fields, {{"log_probabilities", 12, logs}}}; }
};

TEST(SegmentScoreTest, CountsPixelsByLabelAndAnswerAndLeavesOutThoseWithoutALabel) {
  Batch batch;
  batch.add(7, {0, 0, 1, 255}, {0, 1, 1, 0});
  batch.add(3, {255, 255, 255, 255}, {0, 0, 0, 0});
  const auto score = make_segment_score({"a", "b", "c"}, 5, nullptr);
  score->add(batch.rows());
  EXPECT_EQ(score->samples(), 1);
  const base::Json all = score->to_json();
  EXPECT_EQ(all.at("pixels").as_int(), 3);
  EXPECT_DOUBLE_EQ(all.at("pixel_accuracy").as_double(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(all.at("classes").items()[0].at("iou").as_double(), 0.5);
  EXPECT_DOUBLE_EQ(all.at("classes").items()[1].at("iou").as_double(), 0.5);
  EXPECT_TRUE(all.at("classes").items()[2].at("iou").is_null());  // nowhere: no part of the mean
  EXPECT_DOUBLE_EQ(all.at("miou").as_double(), 0.5);
  EXPECT_DOUBLE_EQ(all.at("constant").at("miou").as_double(), 2.0 / 3 / 2);
  EXPECT_NEAR(all.at("loss").as_double(), -(2 * std::log(0.8) + std::log(0.1)) / 3, 1e-6);
}

TEST(SegmentScoreTest, IsTheSameOverAnyRanks) {
  Batch first, second, both;
  const auto add = [](Batch& to, int64_t id) {
    to.add(id, {0, 1, 2, static_cast<uint8_t>(id % 3)}, {0, static_cast<int>(id % 3), 2, 1});
  };
  for (const int64_t id : {5, 2, 9}) add(first, id);
  for (const int64_t id : {1, 4}) add(second, id);
  for (const int64_t id : {1, 2, 4, 5, 9}) add(both, id);
  const auto whole = make_segment_score({"a", "b", "c"}, 2, nullptr);
  const auto one = make_segment_score({"a", "b", "c"}, 2, nullptr);
  const auto two = make_segment_score({"a", "b", "c"}, 2, nullptr);
  whole->add(both.rows());
  one->add(first.rows());
  two->add(second.rows());
  two->merge(one->pack());
  EXPECT_EQ(two->to_json(), whole->to_json());
  EXPECT_EQ(whole->worst().size(), 2U);
}

TEST(SegmentScoreTest, ANetworkThatGivesNoNumbersIsNotSound) {
  Batch batch;
  batch.add(1, {0, 0, 0, 0}, {0, 0, 0, 0});
  for (float& value : batch.logs) value = NAN;
  const auto score = make_segment_score({"a", "b", "c"}, 1, nullptr);
  score->add(batch.rows());
  EXPECT_FALSE(score->is_sound());
}

}  // namespace
}  // namespace lockstep::task
