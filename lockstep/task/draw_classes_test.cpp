// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/draw_classes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::task {
namespace {

TEST(DrawClassesTest, WritesTheMostProbableInTheCorner) {
  const auto record = base::parse_json(R"({"classes": [{"name": "cat", "probability": 0.85},
      {"name": "dog", "probability": 0.1}, {"name": "cow", "probability": 0.05}]})",
                                       "record");
  image::Image image(100, 60);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{90});
  EXPECT_TRUE(draw_classes(record, image));
  const auto changed = [&](int64_t y) {
    return std::any_of(image.row(y), image.row(y) + 3 * image.width, [](uint8_t value) { return value != 90; });
  };
  EXPECT_TRUE(changed(59));
  EXPECT_TRUE(changed(60 - 18));   // two lines
  EXPECT_FALSE(changed(60 - 19));  // the third is too improbable
  EXPECT_FALSE(draw_classes(base::parse_json(R"({"age": 7})", "record"), image));
}

}  // namespace
}  // namespace lockstep::task
