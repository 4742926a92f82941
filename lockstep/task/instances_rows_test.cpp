// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_rows.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::task {
namespace {

std::vector<FieldValues> shown_field(float height, float width) {
  const std::vector<float> shown{height, width};
  const auto bytes = std::as_bytes(std::span(shown));
  return {{{.name = "shown", .shape = {2}}, {bytes.begin(), bytes.end()}}};
}

TEST(InstancesRows, BringsDetectionsToPixelsOfTheImage) {
  const int64_t id = 3;
  const auto fields = shown_field(50, 100);
  const std::vector<float> boxes{10, 20, 30, 40, 0, 0, 100, 50, 1, 1, 2, 2, 5, 5, 6, 6, 0, 0, NAN, 9};
  const std::vector<float> scores{0.5F, 0.75F, 0, 0.9F, 0.9F}, labels{2, 1, 1, 7, 1};
  const std::vector<std::string> annotations{R"({"width": 400, "height": 200})"};
  const Rows rows{
      std::span(&id, 1), fields, {{"boxes", 20, boxes}, {"scores", 5, scores}, {"labels", 5, labels}}, annotations};
  const ImageExtent image = extent_of(rows, 0);
  EXPECT_EQ(image.width, 400);
  const std::vector<Detection> found = detections_of(rows, 0, image, 2);
  ASSERT_EQ(found.size(), 2U) << "an empty slot, an unknown class and a box of no numbers are left out";
  EXPECT_EQ(found[0].label, 0);
  EXPECT_EQ(found[0].box, (std::array<float, 4>{0, 0, 400, 200}));
  EXPECT_EQ(found[1].label, 1);
  EXPECT_EQ(found[1].box, (std::array<float, 4>{40, 80, 120, 160}));
  EXPECT_TRUE(found[1].mask.empty());
}

TEST(InstancesRows, FindsEachDetectionsOwnMask) {
  const int64_t id = 3;
  const auto fields = shown_field(40, 40);
  const std::vector<float> boxes{0, 0, 40, 40, 0, 0, 40, 40}, scores{0.6F, 0.8F}, labels{1, 1};
  const std::vector<float> masks{0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<std::string> annotations{R"({"width": 40, "height": 40})"};
  const Rows rows{std::span(&id, 1),
                  fields,
                  {{"boxes", 8, boxes}, {"scores", 2, scores}, {"labels", 2, labels}, {"masks", 8, masks}},
                  annotations};
  const std::vector<Detection> found = detections_of(rows, 0, {40, 40}, 1);
  EXPECT_EQ(found[0].mask_side(), 2);
  EXPECT_GT(found[0].runs(40, 40).size(), 1U) << "the surest is the second, of ones";
  EXPECT_EQ(found[1].runs(40, 40), (std::vector<int64_t>{1600}));
}

}  // namespace
}  // namespace lockstep::task
