// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

using base::Json;
using testing::HasSubstr;

const std::vector<std::string> kRoadUsers{"Car", "Van", "Truck", "DontCare"};

spec::Job cars() {
  spec::Job job;
  job.task = spec::Task::detect;
  job.data.image_size = {64, 128};  // 2 x 4 cells
  job.data.mean = {0, 0, 0};
  job.data.std = {1, 1, 1};
  job.data.augment = spec::Augment::none;
  return job;
}

// Left half black, right half white.
std::string half_file(int64_t width, int64_t height) {
  image::Image image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = width / 2; x < width; ++x) std::memset(image.row(y) + 3 * x, 255, 3);
  }
  return image::encode_png(image);
}

struct Encoded {
  std::vector<std::vector<std::byte>> fields;
  std::string annotation;
  std::vector<std::string> left_out = {};

  const float* floats(size_t field) const { return reinterpret_cast<const float*>(fields[field].data()); }
  std::vector<float> values(size_t field, size_t begin, size_t count) const {
    return {floats(field) + begin, floats(field) + begin + count};
  }
};

Encoded encode(const spec::Job& job, const std::string& json, const std::optional<base::Random>& random = {}) {
  const auto task = make_detect(job, kRoadUsers);
  const auto encoder = task->encoder();
  Encoded out;
  std::vector<std::byte*> to;
  for (const Field& field : task->fields()) out.fields.emplace_back(static_cast<size_t>(field.bytes()));
  for (auto& field : out.fields) to.push_back(field.data());
  const std::string file = half_file(64, 32);
  StoredSample sample;
  sample.image = std::as_bytes(std::span(file.data(), file.size()));
  if (!json.empty()) sample.members = {std::as_bytes(std::span(json.data(), json.size()))};
  encoder->encode(sample, random, to);
  out.annotation = encoder->annotation();
  out.left_out = encoder->left_out();
  return out;
}

// A car on the right, twice as large on the canvas as on the image; a truck and a region that nobody labelled.
constexpr const char* kSample = R"({"width": 64, "height": 32, "objects": [
    {"category": "Truck", "bbox": [0, 0, 8, 8]},
    {"category": "DontCare", "bbox": [0, 16, 16, 16]},
    {"category": "Car", "bbox": [50, 2, 12, 12]}]})";

TEST(DetectTest, StretchesTheImageAndItsObjects) {
  const Encoded all = encode(cars(), kSample);
  EXPECT_NEAR(all.floats(0)[0], 0, 1e-5);
  EXPECT_NEAR(all.floats(0)[3 * (64 * 128 - 1)], 1, 1e-5);
  EXPECT_EQ(all.values(1, 0, 8), (std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(all.values(2, 12, 4), (std::vector<float>{0, 0, 24, 24}));  // 100 .. 124 in cell 96 .. 128: centre 112
  EXPECT_EQ(all.values(3, 0, 8), (std::vector<float>{1, 1, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(Json(base::parse_json(all.annotation, "a")).at("width").as_int(), 64);
}

TEST(DetectTest, AMirroredImageHasMirroredTargets) {
  spec::Job job = cars();
  job.data.augment = spec::Augment::standard;
  int mirrored = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    const Encoded all = encode(job, kSample, base::Random(5, 0, i));
    const bool is_mirrored = all.floats(0)[0] > all.floats(0)[3 * 127];
    mirrored += is_mirrored ? 1 : 0;
    EXPECT_EQ(all.floats(1)[is_mirrored ? 0 : 3], 1);
    EXPECT_EQ(all.floats(3)[is_mirrored ? 7 : 4], 0);
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

TEST(DetectTest, APredictionKnowsTheSizeOfTheImage) {
  const Encoded all = encode(cars(), "");
  EXPECT_EQ(all.values(1, 0, 8), std::vector<float>(8, 0));
  const Json size = base::parse_json(all.annotation, "a");
  EXPECT_EQ(size.at("width").as_int(), 64);
  EXPECT_EQ(size.at("height").as_int(), 32);
}

// What is stored badly is left out and named; what lies outside is no object; an image without any is one of
// background.
TEST(DetectTest, BadObjectsAreNamed) {
  const auto says = [](const char* object) {
    const Encoded all = encode(cars(), std::string(R"({"width": 64, "height": 32, "objects": [)") + object + "]}");
    EXPECT_EQ(all.values(1, 0, 8), std::vector<float>(8, 0));
    return all.left_out.empty() ? "" : all.left_out.front();
  };
  EXPECT_THAT(says(R"({"category": "Car", "bbox": [1, null, 2, 3]})"), HasSubstr("object 0"));
  EXPECT_THAT(says(R"({"category": "Tram", "bbox": [1, 1, 2, 3]})"), HasSubstr("Tram"));
  EXPECT_THAT(says(R"({"category": "Car", "bbox": [1, 1, -2, 3]})"), HasSubstr("below 0"));
  for (const char* nothing :
       {R"({"category": "Car", "bbox": [70, 1, 9, 9]})", R"({"category": "Car", "bbox": [9, 9, 0, 3]})", ""}) {
    const Encoded all = encode(cars(), std::string(R"({"width": 64, "height": 32, "objects": [)") + nothing + "]}");
    EXPECT_EQ(all.values(1, 0, 8), std::vector<float>(8, 0)) << nothing;
    EXPECT_EQ(all.values(3, 0, 8), std::vector<float>(8, 1)) << nothing;
  }
  EXPECT_EQ(encode(cars(), R"({"width": 64, "height": 32, "objects": [{"category": "Car", "bbox": [58, 2, 600, 12]}]})")
                .values(2, 12, 4),
            (std::vector<float>{10, 0, 12, 24}));  // 116 .. 128 of the canvas
}

TEST(DetectTest, ABlankSampleCountsForNothing) {
  const auto task = make_detect(cars(), kRoadUsers);
  const auto encoder = task->encoder();
  std::vector<std::vector<float>> fields;
  std::vector<std::byte*> to;
  for (const Field& field : task->fields()) fields.emplace_back(static_cast<size_t>(field.count()), 9.0F);
  for (auto& field : fields) to.push_back(reinterpret_cast<std::byte*>(field.data()));
  encoder->blank(to);
  EXPECT_EQ(fields[1], std::vector<float>(8, 0));
  EXPECT_EQ(fields[3], std::vector<float>(8, 0));
  EXPECT_EQ(encoder->annotation(), "");
}

TEST(DetectTest, WhatCannotBeLookedForIsAnError) {
  const auto says = [](const spec::Job& job) -> std::string {
    try {
      make_detect(job, kRoadUsers);
    } catch (const base::Error& error) {
      return std::string(error.what()) + "; " + error.fix();
    }
    return "";
  };
  EXPECT_EQ(says(cars()), "");
  spec::Job job = cars();
  job.detect.classes = {"Car", "Vann"};
  EXPECT_THAT(says(job), HasSubstr("the data have no class 'Vann'; did you mean 'Van'"));
  job = cars();
  job.detect.classes = {"Truck"};
  EXPECT_THAT(says(job), HasSubstr("KITTI scores Car, Pedestrian and Cyclist, not 'Truck'"));
  job.detect.protocol = spec::Protocol::coco;
  EXPECT_EQ(says(job), "");
  job = cars();
  job.data.image_size = {375, 1242};
  EXPECT_THAT(says(job), HasSubstr("375x1242 is no multiple of 32"));
}

// Two images of 128 x 64: the canvas is as large, so that boxes of the network are those of the image.
struct Evaluated {
  std::vector<int64_t> ids{7, 3};
  std::vector<FieldValues> fields;
  std::vector<std::string> annotations{
      R"({"width": 128, "height": 64, "objects": [{"category": "Car", "bbox": [10, 10, 40, 45]},
          {"category": "Truck", "bbox": [90, 10, 30, 40]}]})",
      R"({"width": 128, "height": 64, "objects": [{"category": "Car", "bbox": [60, 5, 50, 50]}]})"};
  std::vector<float> boxes = std::vector<float>(2 * 12), scores = std::vector<float>(2 * 3);

  Evaluated() {
    set(0, 0, 0.9F, {10, 10, 50, 54});
    set(0, 1, 0.8F, {90, 10, 120, 50});  // the truck
    set(1, 0, 0.6F, {62, 5, 110, 56});
    set(1, 1, 0.2F, {0, 0, 20, 20});  // below the threshold
  }
  void set(size_t row, size_t at, float score, const std::vector<float>& box) {
    scores[3 * row + at] = score;
    std::copy(box.begin(), box.end(), boxes.begin() + static_cast<int64_t>(12 * row + 4 * at));
  }
  Rows rows() const { return {ids, fields, {{"boxes", 12, boxes}, {"scores", 3, scores}}, annotations}; }
};

TEST(DetectTest, ScoresByKittiWhateverTheRanks) {
  const Evaluated all;
  const auto task = make_detect(cars(), kRoadUsers);
  const auto score = task->score(5);
  score->add(all.rows());
  EXPECT_EQ(score->samples(), 2);
  EXPECT_EQ(score->headline().name, "moderate");
  EXPECT_GT(score->headline().value, 0);
  for (const char* name : {"easy", "hard", "ap11_moderate", "ap40_hard"}) EXPECT_TRUE(score->figures().contains(name));
  EXPECT_EQ(score->worst(), (std::vector<int64_t>{7}));  // where a truck is told to be a car
  const Json mistake = score->to_json().at("worst").items()[0];
  EXPECT_EQ(mistake.at("predicted").as_string(), "0 missed, 1 that are none");
  EXPECT_EQ(mistake.at("record").at("objects").size(), 2U);
  const auto other = task->score(5), empty = task->score(5);
  empty->merge(score->pack());
  other->merge(empty->pack());
  EXPECT_EQ(other->to_json(), score->to_json());
  EXPECT_EQ(score->summary().text(), score->headline().text);  // no loss
}

TEST(DetectTest, ScoresByCocoWhereDataHaveNoLevels) {
  const Evaluated all;
  spec::Job job = cars();
  job.detect.protocol = spec::Protocol::coco;
  const auto score = make_detect(job, kRoadUsers)->score(5);
  score->add(all.rows());
  EXPECT_EQ(score->headline().name, "ap50");
  EXPECT_NEAR(score->headline().value, 0.8333, 0.01);  // right, wrong (the truck), right
}

TEST(DetectTest, ASampleThatWasNotReadIsLeftOut) {
  Evaluated all;
  all.annotations[1].clear();
  const auto score = make_detect(cars(), kRoadUsers)->score(5);
  score->add(all.rows());
  EXPECT_EQ(score->samples(), 1);
}

TEST(DetectTest, RecordsAreInPixelsOfTheImage) {
  Evaluated all;
  all.annotations[0] = R"({"width": 256, "height": 64})";  // twice as wide as the canvas
  const auto task = make_detect(cars(), kRoadUsers);
  const Json record = task->record(all.rows(), 0, 5);
  ASSERT_EQ(record.at("objects").size(), 2U);
  const Json& first = record.at("objects").items()[0];
  EXPECT_EQ(first.at("class").as_string(), "Car");
  EXPECT_EQ(first.at("box"), Json::array({20.0, 10.0, 80.0, 44.0}));
  EXPECT_EQ(task->line(record), "Car 90.0 % at 20 10, 80 x 44, Car 80.0 % at 180 10, 60 x 40");
  EXPECT_EQ(task->cells(record, 5)[0], "2");
  EXPECT_EQ(task->record(all.rows(), 1, 5).at("objects").size(), 1U);  // the other is below the threshold
}

TEST(DetectTest, DrawsTheEdgesOfItsBoxes) {
  const Evaluated all;
  const auto task = make_detect(cars(), kRoadUsers);
  image::Image half(64, 32);  // of 128 x 64
  ASSERT_TRUE(task->draw(task->record(all.rows(), 0, 5), half));
  const auto is_drawn = [&](int64_t x, int64_t y) { return half.row(y)[3 * x] > 0; };
  EXPECT_TRUE(is_drawn(5, 5));
  EXPECT_TRUE(is_drawn(24, 20));
  EXPECT_FALSE(is_drawn(15, 15));
  EXPECT_FALSE(is_drawn(30, 15));
}

}  // namespace
}  // namespace lockstep::task
