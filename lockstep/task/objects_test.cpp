// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/objects.h"

#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

const std::vector<std::string> kClasses{"Car", "Van"};

AnnotatedImage read(const std::string& objects) {
  const std::string all = R"({"width": 100, "height": 50, "objects": [)" + objects + "]}";
  return read_objects(std::as_bytes(std::span(all)), kClasses);
}

// What is left out of objects of which the first is bad and the second, a car, is not.
std::string reason(const std::string& bad) {
  const AnnotatedImage image = read(bad + R"(, {"label": 0, "bbox": [1, 2, 3, 4]})");
  EXPECT_EQ(image.objects.size(), 1U) << "one bad object costs no other";
  return image.left_out.empty() ? "" : image.left_out.front();
}

TEST(Objects, AreReadAsCocoAndKittiHaveThem) {
  const AnnotatedImage image = read(
      R"({"category": "Van", "label": 0, "bbox": [10, 20, 30, 5], "iscrowd": 1, "area": 77, "segmentation": [[1, 2, 3, 4, 5, 6]]},
         {"label": 0, "bbox": [1.5, 2, 3, 4], "truncated": 0.25, "occluded": 2, "segmentation": null})");
  ASSERT_EQ(image.objects.size(), 2U);
  EXPECT_EQ(image.width, 100);
  EXPECT_EQ(image.height, 50);
  const Object& van = image.objects[0];
  EXPECT_EQ(van.label, 1) << "by name, not by the list's own number";
  EXPECT_EQ(van.box, (image::Box{10, 20, 40, 25}));
  EXPECT_TRUE(van.crowd);
  EXPECT_EQ(van.area, 77);
  EXPECT_EQ(van.outline.size(), 1U);
  const Object& car = image.objects[1];
  EXPECT_EQ(car.label, 0);
  EXPECT_EQ(car.area, 12);
  EXPECT_EQ(car.truncated, 0.25);
  EXPECT_EQ(car.occluded, 2);
  EXPECT_TRUE(car.outline.is_null());
}

TEST(Objects, AnOcclusionBeyondKittisLevelsIsUnknown) {
  EXPECT_EQ(read(R"({"label": 0, "bbox": [1, 2, 3, 4], "occluded": 1e300})").objects[0].occluded, 3);
}

TEST(Objects, AreCutAtTheBorder) {
  const AnnotatedImage image = read(R"({"label": 0, "bbox": [-10, 40, 30, 30]}, {"label": 0, "bbox": [200, 0, 5, 5]},
              {"label": 1, "bbox": [5, 5, 0, 9]})");
  EXPECT_EQ(image.objects[0].inside, (image::Box{0, 40, 20, 50}));
  EXPECT_TRUE(image.objects[0].is_seen());
  EXPECT_FALSE(image.objects[1].is_seen());
  EXPECT_FALSE(image.objects[2].is_seen());
}

TEST(Objects, AnImageWithoutAnyHasNone) {
  EXPECT_TRUE(read("").objects.empty());
  const std::string bare = annotation_text(3, 4);
  EXPECT_TRUE(read_objects(std::as_bytes(std::span(bare)), kClasses).objects.empty());
}

TEST(Objects, WhatIsNoneIsLeftOutAndNamed) {
  EXPECT_EQ(reason(R"({"label": 0, "bbox": [1, 2, 3]})"),
            "object 0: its bbox is [1,2,3], and x, y, width, height in pixels are expected");
  EXPECT_EQ(reason(R"({"label": 0})"), "object 0: its bbox is missing, and x, y, width, height in pixels are expected");
  EXPECT_EQ(reason(R"({"label": 0, "bbox": [1, 2, null, 4]})"),
            "object 0: its bbox is [1,2,null,4], and x, y, width, height in pixels are expected");
  EXPECT_EQ(reason(R"({"label": 0, "bbox": [1, 2, -3, 4]})"), "object 0: its bbox [1,2,-3,4] has a size below 0");
  EXPECT_EQ(reason(R"({"category": "Vam", "bbox": [1, 2, 3, 4]})"),
            "object 0: its class \"Vam\" is none of the training data's; did you mean 'Van' or 'Car'?");
  EXPECT_EQ(reason(R"({"label": 2, "bbox": [1, 2, 3, 4]})"),
            "object 0: its label 2 is none of 2 classes, and it has no \"category\"");
  EXPECT_EQ(reason("7"), "object 0: it is no JSON object");
  EXPECT_EQ(reason(R"({"label": 0, "bbox": [1, 2, 3, 4], "iscrowd": "0"})").rfind("object 0: ", 0), 0U);
  EXPECT_EQ(reason(R"({"label": 0, "bbox": [1, 2, 3, 4], "area": "9"})").rfind("object 0: ", 0), 0U);
}

TEST(Objects, ABadOutlineCostsTheMaskAlone) {
  AnnotatedImage image = read(R"({"label": 9, "bbox": [1, 2, 3, 4]},
      {"label": 0, "bbox": [1, 2, 9, 9], "segmentation": [[1, 2, 3, 4]]},
      {"label": 0, "bbox": [1, 2, 9, 9], "segmentation": [[1, 2, 9, 2, 9, 9]]})");
  drop_bad_outlines(image);
  ASSERT_EQ(image.objects.size(), 2U);
  EXPECT_TRUE(image.objects[0].outline.is_null());
  EXPECT_FALSE(image.objects[1].outline.is_null());
  ASSERT_EQ(image.left_out.size(), 2U);
  EXPECT_EQ(image.left_out[1].rfind("the outline of object 1: ", 0), 0U) << image.left_out[1];
}

TEST(Objects, DontCareIsACrowd) {
  const std::string all = R"({"width": 9, "height": 9, "objects": [{"category": "DontCare", "bbox": [1, 2, 3, 4]}]})";
  EXPECT_TRUE(read_objects(std::as_bytes(std::span(all)), {"Car", "DontCare"}).objects[0].crowd);
}

}  // namespace
}  // namespace lockstep::task
