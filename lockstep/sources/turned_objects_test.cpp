// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/turned_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/mask.h"

namespace lockstep::sources {
namespace {

// Of 7 x 5 pixels as stored: x 1 to 4, y 1 to 3, without its corner at 3, 2 in the runs.
base::Json drawn() {
  return base::parse_json(R"({"width": 7, "height": 5, "objects": [
    {"bbox": [1, 1, 3, 2], "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]], "keypoints": [3, 2, 2, 0, 0, 0]},
    {"segmentation": {"size": [5, 7], "counts": [6, 2, 3, 2, 3, 1, 18]}},
    {"segmentation": {"size": [5, 7], "counts": "62300O?"}},
    {"bbox": [0.5, 0.25, 1.1, 2], "segmentation": null}]})",
                          "test");
}

image::Mask mask_in(const base::Json& object, int64_t width, int64_t height) {
  return image::rasterize_mask(object.at("segmentation"), width, height);
}

TEST(TurnedObjectsTest, BoxesPolygonsRunsAndKeypointsTurnAsThePixelsDo) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const base::Json stored = drawn();
    base::Json seen = drawn();
    turn_objects(seen, orientation);
    const image::Turn turn(orientation);
    const int64_t width = turn.swaps ? 5 : 7, height = turn.swaps ? 7 : 5;
    EXPECT_EQ(seen.at("width").as_int(), width) << orientation;
    EXPECT_EQ(seen.at("height").as_int(), height) << orientation;
    const auto &before = stored.at("objects").items(), &after = seen.at("objects").items();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(mask_in(after[i], width, height), image::turn_mask(mask_in(before[i], 7, 5), turn))
          << orientation << ", " << i;
    }
    EXPECT_EQ(after[1].at("segmentation").at("counts").is_array(), true);
    EXPECT_EQ(after[2].at("segmentation").at("counts").is_string(), true);
    const auto& box = after[0].at("bbox").items();
    image::Mask filled(width, height);
    for (int64_t y = box[1].as_int(); y < box[1].as_int() + box[3].as_int(); ++y) {
      for (int64_t x = box[0].as_int(); x < box[0].as_int() + box[2].as_int(); ++x)
        filled.inside[static_cast<size_t>(y * width + x)] = 1;
    }
    EXPECT_EQ(filled, mask_in(after[0], width, height)) << orientation;
    const auto& points = after[0].at("keypoints").items();
    const image::Turn::Pixel from = turn.stored_at(points[0].as_int(), points[1].as_int(), 7, 5);
    EXPECT_EQ(from.x, 3) << orientation;
    EXPECT_EQ(from.y, 2) << orientation;
    EXPECT_EQ(points[3].as_int() + points[4].as_int(), 0) << "an unmarked point stays 0, 0";
  }
}

TEST(TurnedObjectsTest, DecimalCoordinatesStayShort) {
  base::Json sample = drawn();
  turn_objects(sample, 6);
  EXPECT_EQ(sample.at("objects").items()[3].dump(-1), R"({"bbox":[2.75,0.5,2,1.1],"segmentation":null})");
  sample = drawn();
  turn_objects(sample, 3);
  EXPECT_EQ(sample.at("objects").items()[3].at("bbox").dump(-1), "[5.4,2.75,1.1,2]");
}

TEST(TurnedObjectsTest, ASizeTellsWhetherAListKnowsTheOrientation) {
  const image::ImageInfo lying{image::ImageFormat::jpeg, 30, 20, 1}, turned{image::ImageFormat::jpeg, 20, 30, 6};
  EXPECT_EQ(orientation_of_list(lying, 30, 20), 1);
  EXPECT_EQ(orientation_of_list(turned, 30, 20), 6);
  EXPECT_EQ(orientation_of_list(turned, 20, 30), 1);
  EXPECT_EQ(orientation_of_list({image::ImageFormat::jpeg, 20, 20, 6}, 20, 20), 6)
      << "a square tells nothing: as stored";
  EXPECT_EQ(orientation_of_list({image::ImageFormat::jpeg, 30, 20, 3}, 30, 20), 3);
  EXPECT_THROW(orientation_of_list(lying, 20, 30), base::Error);
  EXPECT_THROW(orientation_of_list(turned, 31, 20), base::Error);
}

TEST(TurnedObjectsTest, RefusesOutlinesThatAreNone) {
  for (const char* object : {R"("segmentation": [[1, 2, 3]])", R"("segmentation": [1, 2])", R"("segmentation": 7)",
                             R"("keypoints": [1, 2])", R"("segmentation": {"size": [7, 5], "counts": [35]})"}) {
    base::Json sample =
        base::parse_json(std::string(R"({"width": 7, "height": 5, "objects": [{)") + object + "}]}", "x");
    EXPECT_THROW(turn_objects(sample, 6), base::Error) << object;
  }
}

}  // namespace
}  // namespace lockstep::sources
