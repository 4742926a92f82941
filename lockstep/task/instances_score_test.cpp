// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

using base::Json;

constexpr int64_t kSlots = 3, kSide = 28;

// What a network said of an image of 100 x 100 pixels that it saw in 50 x 50; the mask of each detection fills its box.
struct Told {
  std::vector<float> boxes = std::vector<float>(kSlots * 4);
  std::vector<float> scores = std::vector<float>(kSlots), labels = std::vector<float>(kSlots, 1);
  std::vector<float> masks = std::vector<float>(kSlots * kSide * kSide, 1);

  Told& add(size_t slot, float score, float label, const std::vector<float>& box) {
    std::copy(box.begin(), box.end(), boxes.begin() + static_cast<std::ptrdiff_t>(slot * 4));
    scores[slot] = score;
    labels[slot] = label;
    return *this;
  }
};

void add(Score& score, int64_t id, const Told& told, const std::string& objects, bool has_masks = true) {
  const std::vector<float> shown{50, 50};
  const auto bytes = std::as_bytes(std::span(shown));
  const std::vector<FieldValues> fields{{{.name = "shown", .shape = {2}}, {bytes.begin(), bytes.end()}}};
  const std::vector<std::string> annotations{
      objects == "unread" ? "" : R"({"width": 100, "height": 100, "objects": [)" + objects + "]}"};
  Rows rows{std::span(&id, 1),
            fields,
            {{"boxes", kSlots * 4, told.boxes}, {"scores", kSlots, told.scores}, {"labels", kSlots, told.labels}},
            annotations};
  if (has_masks) rows.outputs.push_back({"masks", kSlots * kSide * kSide, told.masks});
  score.add(rows);
}

const std::string kCat = R"({"category": "cat", "bbox": [20, 20, 40, 40], "area": 1600,
                             "segmentation": [[20, 20, 60, 20, 60, 60, 20, 60]]})";
const std::string kDog = R"({"category": "dog", "bbox": [70, 70, 20, 20], "area": 400,
                             "segmentation": [[70, 70, 90, 70, 90, 90, 70, 90]]})";

TEST(InstancesScore, IsCocosOnTheImagesOwnPixels) {
  const auto score = make_instances_score({"cat", "dog"}, true, 4);
  add(*score, 5, Told().add(0, 0.9F, 1, {10, 10, 30, 30}), kCat + "," + kDog);
  EXPECT_EQ(score->samples(), 1);
  EXPECT_EQ(score->headline().name, "mask_ap");
  EXPECT_NEAR(score->figures().at("box_ap").as_double(), 0.5, 1e-9) << "the cat is found, the dog is not";
  EXPECT_NEAR(score->figures().at("mask_ap50").as_double(), 0.5, 1e-9);
  EXPECT_GT(score->headline().value, 0.4);
  const Json all = score->to_json();
  EXPECT_EQ(all.at("classes").items()[1].at("name").as_string(), "dog");
  EXPECT_EQ(all.at("classes").items()[1].at("average_precision").as_double(), 0);
  EXPECT_EQ(all.at("boxes").at("ap_large").kind(), Json::Kind::null) << "there is no large object";
  EXPECT_THAT(score->line(), testing::HasSubstr("box AP 50.00 %  AP50 50.00 %"));
  EXPECT_THAT(score->to_text(), testing::HasSubstr("dog"));
}

TEST(InstancesScore, BoxesAloneHaveTheirOwnHeadline) {
  const auto score = make_instances_score({"cat", "dog"}, false, 4);
  add(*score, 5, Told().add(0, 0.9F, 1, {10, 10, 30, 30}), kCat, false);
  EXPECT_EQ(score->headline().name, "box_ap");
  EXPECT_NEAR(score->headline().value, 1, 1e-9);
  EXPECT_FALSE(score->figures().contains("mask_ap"));
  EXPECT_EQ(score->headline().text, "box AP 100.00 %");
}

TEST(InstancesScore, ObjectsWithoutAnOutlineHaveNoPartInTheMasks) {
  const auto score = make_instances_score({"cat", "dog"}, true, 4);
  add(*score, 5, Told().add(0, 0.9F, 1, {10, 10, 30, 30}).add(1, 0.8F, 2, {35, 35, 45, 45}),
      kCat + R"(, {"category": "dog", "bbox": [70, 70, 20, 20]})");
  const Json all = score->to_json();
  EXPECT_NEAR(all.at("box_ap").as_double(), 1, 1e-9);
  EXPECT_EQ(all.at("classes").items()[1].at("average_precision").kind(), Json::Kind::null);
  const auto boxes = make_instances_score({"cat", "dog"}, true, 4);
  add(*boxes, 5, Told().add(0, 0.9F, 1, {10, 10, 30, 30}), R"({"category": "cat", "bbox": [20, 20, 40, 40]})");
  EXPECT_EQ(boxes->headline().name, "box_ap") << "no outline at all: the boxes are what is learnt";
  EXPECT_NEAR(boxes->headline().value, 1, 1e-9);
}

TEST(InstancesScore, SetsTheWorstImagesFirst) {
  const auto score = make_instances_score({"cat", "dog"}, true, 4);
  add(*score, 1, Told().add(0, 0.9F, 1, {10, 10, 30, 30}), kCat);
  add(*score, 2, Told().add(0, 0.9F, 2, {10, 10, 30, 30}).add(1, 0.4F, 2, {0, 0, 9, 9}), kCat);
  add(*score, 3, Told(), kDog);
  add(*score, 4, Told().add(0, 0.9F, 1, {1, 1, 9, 9}), R"({"category": "cat", "bbox": [0, 0, 50, 50], "iscrowd": 1})");
  add(*score, 6, Told(), "unread");
  EXPECT_EQ(score->samples(), 4);
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{2, 3})) << "a crowd takes any detection of its class";
  const Json first = score->to_json().at("worst").items()[0];
  EXPECT_EQ(first.at("target").as_string(), "1 object");
  EXPECT_EQ(first.at("predicted").as_string(), "0 found, 1 missed, 1 wrong");
  const Json& record = first.at("record");  // what is drawn on the image: the sure dog, and the cat that is there
  ASSERT_EQ(record.at("objects").size(), 1U);
  EXPECT_EQ(record.at("objects").items()[0].at("class").as_string(), "dog");
  EXPECT_TRUE(record.at("objects").items()[0].contains("segmentation"));
  EXPECT_EQ(record.at("truths").items()[0].at("box").dump(-1), "[20,20,40,40]");
}

TEST(InstancesScore, IsTheSameWhateverTheRanks) {
  const Told first = Told().add(0, 0.9F, 1, {10, 10, 30, 30}).add(1, 0.3F, 2, {30, 30, 45, 45});
  const Told second = Told().add(0, 0.9F, 2, {34, 35, 45, 45}).add(1, 0.7F, 1, {0, 0, 9, 9});
  const auto all = make_instances_score({"cat", "dog"}, true, 4);
  add(*all, 1, first, kCat + "," + kDog);
  add(*all, 2, second, kDog);
  add(*all, 3, Told(), "");
  const auto a = make_instances_score({"cat", "dog"}, true, 4), b = make_instances_score({"cat", "dog"}, true, 4);
  add(*b, 3, Told(), "");
  add(*b, 1, first, kCat + "," + kDog);
  add(*a, 2, second, kDog);
  a->merge(b->pack());
  EXPECT_EQ(a->to_json(), all->to_json());
  EXPECT_EQ(a->headline(), all->headline());
}

TEST(InstancesScore, TellsWhatTheContextDoes) {
  const auto context =
      std::make_shared<const Context>("cat,dog,0.01", "pairs.csv", std::vector<std::string>{"cat", "dog"}, 1);
  const auto score = make_instances_score({"cat", "dog"}, true, 4, context);
  add(*score, 1, Told().add(0, 0.9F, 1, {10, 10, 30, 30}).add(1, 0.8F, 2, {1, 1, 9, 9}), kCat);  // no dog there
  add(*score, 2, Told().add(0, 0.7F, 2, {35, 35, 45, 45}), kDog);
  EXPECT_LT(score->figures().at("ap_without_context").as_double(), score->headline().value);
  EXPECT_NEAR(score->figures().at("box_ap").as_double(), 1, 1e-9);
  EXPECT_THAT(score->line(), testing::HasSubstr("without context AP"));
}

TEST(InstancesScore, WithoutAnyObjectNothingIsSound) {
  const auto score = make_instances_score({"cat", "dog"}, true, 4);
  add(*score, 1, Told().add(0, NAN, 1, {1, 1, 9, 9}), "");
  EXPECT_FALSE(score->is_sound());
  EXPECT_EQ(score->headline().text, "box AP -");
}

}  // namespace
}  // namespace lockstep::task
