// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/coco_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using testing::HasSubstr;

TEST(CocoListTest, KeepsBoxesPolygonsRleAndCaptions) {
  const std::string text = R"({"annotations": [
      {"id": 1, "image_id": 7, "category_id": 18, "bbox": [1, 2.5, 3, 4], "area": 12, "iscrowd": 0, "segmentation": [[1, 2, 3, 4, 5, 6]]},
      {"id": 2, "image_id": 7, "category_id": 1, "bbox": [0, 0, 9, 9], "iscrowd": 1, "segmentation": {"counts": [3, 4], "size": [9, 9]}},
      {"id": 3, "image_id": 8, "caption": "a dog"}],
    "images": [{"id": 7, "file_name": "a.jpg", "width": 9, "height": 9}, {"id": 8, "file_name": "b.jpg"}],
    "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}]})";
  const CocoList list(text, "x.json");
  ASSERT_EQ(list.images().size(), 2u);
  EXPECT_EQ(list.images()[0].width, 9);
  base::Json first = base::Json::object(), second = base::Json::object();
  list.describe(0, {{"person", 0}, {"dog", 1}}, first);
  list.describe(1, {}, second);
  EXPECT_EQ(
      first.at("objects").items()[0].dump(-1),
      R"({"label":1,"category":"dog","id":1,"bbox":[1,2.5,3,4],"area":12,"iscrowd":0,"segmentation":[[1,2,3,4,5,6]]})");
  EXPECT_EQ(first.at("objects").items()[1].at("segmentation").at("counts").size(), 2u);
  EXPECT_EQ(second.dump(-1), R"({"captions":["a dog"]})");
}

TEST(CocoListTest, NamesWhatContradictsItself) {
  const auto complaint = [](const std::string& text) {
    try {
      const CocoList list(text, "x.json");
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(complaint("{}"), HasSubstr("it lists no images"));
  EXPECT_THAT(complaint(R"({"images": [{"id": 1}]})"), HasSubstr("file_name"));
  EXPECT_THAT(complaint(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2}]})"),
              HasSubstr("the image 2, which is not listed"));
  EXPECT_THAT(
      complaint(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "category_id": 3}]})"),
      HasSubstr("category 3, which is not listed"));
  EXPECT_THAT(complaint(R"({"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}]})"),
              HasSubstr("listed twice"));
  EXPECT_THAT(
      complaint(
          R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": [1, 2, -3, 4]}]})"),
      HasSubstr("is no x, y, width, height"));
}

}  // namespace
}  // namespace lockstep::data
