// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/coco_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

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
  std::set<std::string> told;
  list.describe(0, {{"person", 0}, {"dog", 1}}, first, told);
  list.describe(1, {}, second, told);
  EXPECT_EQ(
      first.at("objects").items()[0].dump(-1),
      R"({"label":1,"category":"dog","id":1,"category_id":18,"bbox":[1,2.5,3,4],"area":12,"iscrowd":0,"segmentation":[[1,2,3,4,5,6]]})");
  EXPECT_EQ(first.at("objects").items()[1].at("segmentation").at("counts").size(), 2u);
  EXPECT_EQ(second.dump(-1), R"({"captions":["a dog"]})");
}

TEST(CocoListTest, TellsWhatStandsInSeveralListsOnce) {
  const std::string head = R"({"images": [{"id": 7, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "dog"}],)";
  const std::string one = R"({"id": 25, "image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12.5})";
  const std::string same = R"({"bbox": [1, 2, 3, 4], "id": 25, "image_id": 7, "category_id": 1, "area": 12.50})";
  const std::string other = R"({"id": 25, "image_id": 7, "category_id": 1, "bbox": [5, 2, 3, 4]})";
  const std::string unnumbered = R"({"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4]})";
  const std::string words = R"({"id": 25, "image_id": 7, "caption": "a dog"})";
  const std::string text = head + R"("annotations": [)" + one + "," + same + "," + other + "," + words + "]}";
  const std::string overlap = head + R"("annotations": [)" + words + "," + unnumbered + "," + one + "]}";
  base::Json sample = base::Json::object();
  std::set<std::string> told;
  CocoList(text, "x.json").describe(0, {{"dog", 0}}, sample, told);
  CocoList(overlap, "y.json").describe(0, {{"dog", 0}}, sample, told);
  ASSERT_EQ(sample.at("objects").size(), 3u) << "lists may number on their own; without a number nobody knows";
  EXPECT_EQ(sample.at("objects").items()[0].at("area").as_double(), 12.5);
  EXPECT_EQ(sample.at("objects").items()[1].at("bbox").dump(-1), "[5,2,3,4]");
  EXPECT_FALSE(sample.at("objects").items()[2].contains("id"));
  EXPECT_EQ(sample.at("captions").size(), 1u);
}

TEST(CocoListTest, NamesThePlaceAndTheFixOfWhatContradictsItself) {
  const auto complaint = [](const std::string& text) {
    try {
      const CocoList list(text, "x.json");
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      EXPECT_NE(error.fix(), "") << error.what();
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  const std::string image = "{\"images\": [{\"id\": 1, \"file_name\": \"a\"}";
  EXPECT_THAT(complaint("{}"), HasSubstr("it lists no images"));
  EXPECT_THAT(complaint("{\"images\":\n [{\"id\": 1}]}"), AllOf(StartsWith("x.json:2:3: "), HasSubstr("file_name")));
  EXPECT_EQ(complaint(image + "],\n\"annotations\": [{\"image_id\": 1, \"category_id\": 3}]}"),
            "x.json:2:48: the category 3 is not listed in \"categories\"");
  EXPECT_EQ(complaint(image + "],\n\"annotations\": [{\"image_id\": 1, \"category_id\": \"3\"}]}"),
            "x.json:2:48: an integer is expected, this is a string");
  EXPECT_EQ(complaint(image + ",\n{\"id\": 1, \"file_name\": \"b\"}]}"),
            "x.json:2:8: the image 1 is \"b\" here, and \"a\" before");
  EXPECT_EQ(complaint(image + "],\n\"annotations\": [{\"image_id\": 1, \"bbox\": [1, 2, 3]}]}"),
            "x.json:2:41: the box [1,2,3] is no x, y, width, height");
}

TEST(CocoListTest, LeavesOutAndCountsWhatIsCommonAndHarmless) {
  const std::string text = R"({"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "a"}], "annotations": [
      {"id": 10, "image_id": 2}, {"id": 11, "image_id": 1, "bbox": [1, 2, -3, 4]}, {"image_id": 1, "bbox": [1, 2, 3, 0]},
      {"id": 13, "image_id": 1, "bbox": [-1, -2, 3, 4]}]})";
  const CocoList list(text, "x.json");
  EXPECT_THAT(
      list.left_out(),
      testing::ElementsAre(Refused{"x.json: image 1", "listed twice"},
                           Refused{"x.json: annotation 10", "of the image 2, which is not listed"},
                           Refused{"x.json: annotation 11", "the box [1,2,-3,4] of image 1 has no area"},
                           Refused{"x.json: annotation without a number", "the box [1,2,3,0] of image 1 has no area"}));
  ASSERT_EQ(list.images().size(), 1u);
  base::Json sample = base::Json::object();
  std::set<std::string> told;
  list.describe(0, {}, sample, told);
  EXPECT_EQ(sample.dump(-1), R"({"objects":[{"id":13,"bbox":[-1,-2,3,4]}]})");
}

TEST(CocoListTest, LeavesOutOutlinesThatAreNone) {
  base::Json sample = base::parse_json(R"({"width": 9, "height": 5, "objects": [
      {"id": 1, "segmentation": [[1, 1, 4, 4]]}, {"id": 2, "segmentation": {"size": [9, 5], "counts": [45]}},
      {"id": 3, "segmentation": [[1, 1, 4, 1, 4, 4]]}, {"id": 4, "segmentation": []}, {"id": 5}]})",
                                       "sample");
  leave_out_bad_outlines(sample);
  const auto& objects = sample.at("objects").items();
  EXPECT_EQ(objects[0].dump(-1),
            R"({"id":1,"segmentation_left_out":"segmentation: a polygon has three corners or more, each x and y"})");
  EXPECT_EQ(objects[1].at(kOutlineLeftOut).as_string(), "segmentation: its size [9,5] is not that of the image");
  for (size_t i = 2; i < 5; ++i) EXPECT_FALSE(objects[i].contains(kOutlineLeftOut)) << i;
  EXPECT_TRUE(objects[2].contains("segmentation"));
}

}  // namespace
}  // namespace lockstep::sources
