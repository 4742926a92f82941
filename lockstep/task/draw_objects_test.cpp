// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/draw_objects.h"

#include <gtest/gtest.h>

#include "lockstep/image/draw.h"

namespace lockstep::task {
namespace {

image::Color pixel(const image::Image& image, int64_t x, int64_t y) {
  const uint8_t* at = image.row(y) + 3 * x;
  return {at[0], at[1], at[2]};
}

TEST(DrawObjectsTest, DrawsBoxesMasksAndNamesInTheSizeOfTheImage) {
  const auto record = base::parse_json(
      R"({"width": 80, "height": 40, "objects": [
        {"class": "cat", "label": 1, "score": 0.9, "box": [40, 20, 36, 18],
         "segmentation": {"size": [40, 80], "counts": [2400, 800]}},
        {"class": "cat", "label": 2, "score": 0.4, "box": [0, 0, 10, 10]}]})",
      "record");
  image::Image image(40, 20);  // half as large
  EXPECT_TRUE(draw_objects(record, image));
  EXPECT_EQ(pixel(image, 20, 18), image::class_color(1));  // the frame begins at 40 / 2
  EXPECT_NE(pixel(image, 32, 15), (image::Color{}));       // the mask, columns 60 to 79 of the record
  EXPECT_EQ(pixel(image, 25, 17), (image::Color{}));       // inside of the box, outside of the mask
  EXPECT_EQ(pixel(image, 2, 0), (image::Color{}));         // too unsure to be drawn
}

TEST(DrawObjectsTest, AMaskOfAnotherSizeIsLeftOutAndOtherRecordsAreNotDrawn) {
  const auto record = base::parse_json(
      R"({"width": 8, "height": 8, "objects": [{"class": "a", "label": 0, "score": 1, "box": [0, 0, 8, 8],
          "segmentation": {"size": [1, 1], "counts": [0, 1]}}]})",
      "record");
  image::Image image(64, 64);
  EXPECT_TRUE(draw_objects(record, image));
  EXPECT_EQ(pixel(image, 30, 40), (image::Color{}));
  EXPECT_FALSE(draw_objects(base::parse_json(R"({"classes": []})", "record"), image));
}

}  // namespace
}  // namespace lockstep::task
